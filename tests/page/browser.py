"""Chromium without a window, told what to do through its DevTools protocol over a pipe."""

import base64
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 60  # that anything may take
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowRight": (39, ""), "ArrowLeft": (37, ""), " ": (32, " ")}
SHIFT = 8


class Browser:
    """From `with` on. Its pages have nothing in common."""

    def __enter__(self) -> "Browser":
        self.profile = tempfile.mkdtemp(prefix="forerun-page-")
        command_end, self.commands = os.pipe()
        self.events, event_end = os.pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run",
                 "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                 *(["--no-sandbox"] if os.getuid() == 0 else [])]  # fmt: skip
        # It reads from descriptor 3 and writes to 4.
        shell = ["bash", "-c", f'exec "$@" 3<&{command_end} 4>&{event_end}', "chromium", "chromium", *flags]
        self.process = subprocess.Popen(shell, pass_fds=(command_end, event_end), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        os.close(command_end)
        os.close(event_end)
        self.lock = threading.Lock()
        self.last_id = 0
        self.answers: dict[int, queue.Queue] = {}
        self.pages: dict[str, Page] = {}
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_) -> None:
        try:
            self.command("Browser.close")
            self.process.wait(timeout=10)
        except (AssertionError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join(timeout=10)
        os.close(self.commands)
        os.close(self.events)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self) -> None:
        left = b""
        while data := os.read(self.events, 1 << 16):
            *messages, left = (left + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.answers.pop(message["id"]).put(message)
                elif page := self.pages.get(message.get("sessionId", "")):
                    page.on_event(message["method"], message["params"])

    def send(self, method: str, parameters: dict, session: str | None) -> queue.Queue:
        answer: queue.Queue = queue.Queue()
        with self.lock:
            self.last_id += 1
            self.answers[self.last_id] = answer
            message = {"id": self.last_id, "method": method, "params": parameters}
            data = json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0"
            while data:
                data = data[os.write(self.commands, data) :]
        return answer

    def command(self, method: str, session: str | None = None, **parameters) -> dict:
        try:
            answer = self.send(method, parameters, session).get(timeout=SECONDS)
        except queue.Empty:
            raise AssertionError(f"the browser does not answer {method}") from None
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url: str, width: int = 1100, height: int = 800, scheme: str = "light") -> "Page":
        """A page that shares nothing with those before."""
        context = self.command("Target.createBrowserContext")["browserContextId"]
        target = self.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.command(f"{domain}.enable")
        page.resize(width, height)
        page.prefer(scheme)
        page.go(url)
        return page


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session
        self.complaints: list[str] = []  # errors and warnings of its console
        self.urls: list[str] = []  # that it asked for
        self.change_body: Callable[[dict], dict] | None = None

    def command(self, method: str, **parameters) -> dict:
        return self.browser.command(method, self.session, **parameters)

    def on_event(self, method: str, parameters: dict) -> None:
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(argument.get("value")) for argument in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.urls.append(parameters["request"]["url"])
        elif method == "Fetch.requestPaused":
            # Within the reader's thread: nothing may be waited for.
            body = self.change_body(json.loads(parameters["request"]["postData"]))
            data = base64.b64encode(json.dumps(body).encode()).decode()
            self.browser.send("Fetch.continueRequest", {"requestId": parameters["requestId"], "postData": data}, self.session)

    # ---- What it is like ----

    def go(self, url: str) -> None:
        self.command("Page.navigate", url=url)
        self.wait_until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def reload(self) -> None:
        self.evaluate("window.isOld = true")
        self.command("Page.reload")
        self.wait_until("!window.isOld && document.readyState === 'complete'")

    def resize(self, width: int, height: int) -> None:
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 600)  # fmt: skip

    def prefer(self, scheme: str) -> None:
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def change_requests(self, change: Callable[[dict], dict]) -> None:
        """Answers are asked for with what `change` makes of the request."""
        self.change_body = change
        self.command("Fetch.enable", patterns=[{"urlPattern": "*/v1/chat/completions"}])

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"]))

    # ---- What is on it ----

    def evaluate(self, expression: str) -> object:
        answer = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def wait_until(self, expression: str, seconds: float = SECONDS) -> object:
        deadline = time.monotonic() + seconds
        while True:
            try:
                # An element has no value outside the page.
                if value := self.evaluate(f"(found => found instanceof Node || found)({expression})"):
                    return value
            except AssertionError:
                # Between two pages there is nothing to ask.
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                shown = self.evaluate("document.body.innerText")
                raise AssertionError(f"not within {seconds} s: {expression}\non the page:\n{shown}\n{self.complaints}")
            time.sleep(0.03)

    def text(self, selector: str) -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def named_controls(self) -> list[tuple[str, str]]:
        """Role and name of whatever can have the focus, as assistive technology gets them."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node["ignored"] and any(entry["name"] == "focusable" and entry["value"]["value"]
                                               for entry in node.get("properties", []))]  # fmt: skip

    # ---- What a user does ----

    def press(self, key: str, modifiers: int = 0) -> None:
        code, text = KEYS[key]
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.command("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.command("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        self.command("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        x, y = self.evaluate(f"""(() => {{
            const one = document.querySelector({json.dumps(selector)});
            one.scrollIntoView({{block: "nearest"}});
            const box = one.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
