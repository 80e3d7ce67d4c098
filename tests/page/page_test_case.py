"""A browser, a server and what the tests of the page do with both."""

import contextlib
import json
import threading
import unittest
from pathlib import Path

from browser import Browser, Page
from program import model
from server import Server

SMOLLM2 = model("smollm2")
REPETITIVE = "Repeat: one two three four five six. one two three four five six. one two three four five six."
IS_IDLE = "document.querySelector('#send').textContent === 'Send'"
IS_BUSY = "document.querySelector('#send').textContent === 'Stop'"
ORIGINS = ["", "input", "datastore", "guess", "layers", "draft_model", "model", "prediction", "grammar", "another"]

LONG = {"prompt": "Once", "n_predict": 900, "ignore_eos": True}

_browser = Browser()


def setUpModule() -> None:
    """For the modules that import it: one browser for all their tests."""
    _browser.__enter__()
    unittest.addModuleCleanup(_browser.__exit__)


class PageTestCase(unittest.TestCase):
    def open(self, server: Server, **options) -> Page:
        self.address = f"http://127.0.0.1:{server.port}/"
        return _browser.open(self.address, **options)

    def choose(self, page: Page, **settings) -> None:
        page.evaluate(f"localStorage.setItem('forerun.settings', {json.dumps(json.dumps(settings))})")
        page.reload()

    def ask(self, page: Page, text: str) -> None:
        page.evaluate("document.querySelector('#text').focus()")
        page.type(text)
        page.press("Enter")

    def answer(self, page: Page, text: str) -> dict:
        """The answer to a text, as the browser keeps it."""
        n_before = page.evaluate("document.querySelectorAll('.answer').length")
        self.ask(page, text)
        page.wait_until(f"document.querySelectorAll('.answer').length === {n_before + 1} && {IS_IDLE}")
        return self.messages(page)[-1]

    def messages(self, page: Page) -> list[dict]:
        return page.evaluate("JSON.parse(localStorage.getItem('forerun.chat.' + sessionStorage.getItem('forerun.chat')))")

    def keep_chat(self, page: Page, messages: list[dict]) -> None:
        """Makes `messages` the chat that the browser has kept."""
        page.evaluate(f"localStorage.setItem('forerun.chat.made', {json.dumps(json.dumps(messages))})")
        page.evaluate("""localStorage.setItem('forerun.chats', JSON.stringify([{id: 'made', title: 'made', time: 0}]));
                         sessionStorage.setItem('forerun.chat', 'made')""")
        page.reload()

    def click_button(self, page: Page, label: str) -> None:
        found = page.evaluate(f"""[...document.querySelectorAll('button')].filter(one => one.checkVisibility())
            .find(one => one.textContent.startsWith({json.dumps(label)}))?.click() === undefined""")
        self.assertTrue(found, label)


class OtherClient(threading.Thread):
    """Gets a long answer from start() until stop()."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.is_over = threading.Event()

    def run(self) -> None:
        with contextlib.closing(self.server.stream("/completion", LONG)) as events:
            for _ in events:
                if self.is_over.is_set():
                    return

    def stop(self) -> None:
        self.is_over.set()
        self.join()


def made_chat() -> list[dict]:
    """A chat with everything that an answer can have."""
    text = Path(__file__).with_name("answer.md").read_text()
    timings = {"cache_n": 3, "prompt_n": 20, "prompt_ms": 100.0, "predicted_n": 60, "predicted_ms": 1000.0,
               "predicted_per_second": 60.0, "draft_n": 30, "draft_n_accepted": 20, "passes": 40}  # fmt: skip
    tokens = [[f" {origin or 'plain'}{i}", origin] for i in range(4) for origin in ORIGINS]
    request = {"seed": 1, "system": ""}
    first = {"role": "assistant", "content": text, "reasoning": "thoughts", "tokens": tokens, "timings": timings,
             "finish": "length", "isShared": True, "request": request, "other": {"timings": timings, "isSame": False}}  # fmt: skip
    second = {"role": "assistant", "content": "half", "reasoning": "", "tokens": [["half", ""]], "seconds": 2, "request": request,
              "trouble": {"kind": "key", "message": "The server asks for an API key."}}  # fmt: skip
    asked = {"role": "user", "content": "A" + "h" * 200 + "\n  two lines"}
    return [asked, first, asked, second]
