"""A server for the checks beside this file, and what all of them look at: that it lives, how large it is, and
that nobody's text depends on what others do to it."""

import collections
import os
import resource
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "program"))
os.environ.setdefault("FORERUN_PROGRAM", str(ROOT / "build" / "bin" / "forerun"))

from program import model  # noqa: E402
from server import Server  # noqa: E402

GREEDY = {"prompt": "Once upon a time there was a", "n_predict": 24, "temperature": 0, "ignore_eos": True}
SAMPLED = {"prompt": "The history of the river", "n_predict": 24, "seed": 11, "ignore_eos": True}
TOOLS_TEMPLATE = Path(__file__).resolve().parent / "tools.jinja"
ALONE = {"speculative": False, "cache_prompt": False}


class Broken(Exception):
    """The server did what it must not do."""


def allow_many_files() -> None:
    """As many connections as the system lets this process and its servers have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class CheckedServer(Server):
    """smollm2 on a port of its own. Leaving `with` fails where the server has died or ends badly."""

    # One thread does not wait for another where the machine has other things to do.
    flags = ("-t", "1", "--no-pin")
    timeout_s = 300

    def __init__(self, *arguments) -> None:
        super().__init__("-m", model("smollm2"), *arguments)
        self.said: collections.deque[str] = collections.deque(maxlen=200)

    def __enter__(self) -> "CheckedServer":
        super().__enter__()
        # A server must not wait for somebody to read what it says.
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self.reader.start()
        return self

    def __exit__(self, kind, *rest) -> None:
        try:
            code = self.stop()
            self.reader.join(timeout=10)
        finally:
            super().__exit__()
        if kind is None and (code != 0 or any("ERROR: " in line for line in self.said)):
            raise Broken(f"the server ended with {code}: {self.last_words()}")

    def last_words(self) -> str:
        return "".join(line[:300] for line in self.said)[-4000:]

    def rss_mb(self) -> float:
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6

    def n_busy(self) -> int:
        return sum(slot["is_processing"] for slot in self.ask("GET", "/slots")[1])

    def check_alive(self) -> None:
        if self.process.poll() is not None:
            raise Broken(f"the server died with {self.process.returncode}: {self.last_words()}")
        if self.ask("GET", "/health")[0] != 200:
            raise Broken("the server is not well")

    def wait_until_idle(self, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while self.n_busy() > 0:
            if time.monotonic() > deadline:
                raise Broken(f"{self.n_busy()} requests run that nobody waits for")
            time.sleep(0.05)


class Witness(threading.Thread):
    """Somebody who asks the same all along, and must get the same as when nobody else was there."""

    def __init__(self, server: CheckedServer, pause_s: float = 0.1) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.pause_s = pause_s
        self.requests = (GREEDY, SAMPLED)
        self.texts = [server.post("/completion", request | ALONE)["content"] for request in self.requests]
        self.n_answers = 0
        self.trouble: str | None = None
        self.is_over = threading.Event()

    def __enter__(self) -> "Witness":
        self.start()
        return self

    def __exit__(self, kind, *_) -> None:
        self.is_over.set()
        self.join(timeout=600)
        if kind is not None:
            return
        if self.is_alive():
            raise Broken("another's request is not answered")
        if self.trouble or self.n_answers == 0:
            raise Broken(f"another's request: {self.trouble or 'was never answered'}")

    def run(self) -> None:
        while not self.is_over.wait(self.pause_s):
            for request, text in zip(self.requests, self.texts, strict=True):
                try:
                    got = self.server.post("/completion", request)["content"]
                except Exception as error:
                    self.trouble = f"{type(error).__name__}: {error}"
                    return
                if got != text:
                    self.trouble = f"{got!r} instead of {text!r}"
                    return
                self.n_answers += 1
