"""The page of `forerun serve`, as people use it in a browser."""

import json
import time
import unittest

from browser import SHIFT, Page
from page_test_case import (
    IS_BUSY, IS_IDLE, REPETITIVE, SMOLLM2, OtherClient, PageTestCase, setUpModule,  # noqa: F401
)  # fmt: skip
from server import Server

GREEDY = {"temperature": "0", "max_tokens": "32"}


class PageTest(PageTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("-m", SMOLLM2, "-c", 1024, "--parallel", 2, "--alias", "small").__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def setUp(self) -> None:
        self.page = self.open(self.server)

    def tearDown(self) -> None:
        self.assertEqual(self.page.complaints, [])
        elsewhere = [url for url in self.page.urls if not url.startswith(self.address)]
        self.assertEqual(elsewhere, [])

    def n_busy(self) -> int:
        return sum(slot["is_processing"] for slot in self.server.ask("GET", "/slots")[1])

    def test_answers_come_in_parts_and_are_shaded(self):
        page = self.page
        page.change_requests(lambda body: body | {"ignore_eos": True})
        self.choose(page, temperature="0", max_tokens="64", speculative="pld")
        self.ask(page, REPETITIVE)
        page.wait_until(f"{IS_BUSY} && document.querySelector('.tokens span')")
        n_first = page.evaluate("document.querySelectorAll('.tokens span').length")
        page.wait_until(IS_IDLE)
        answer = self.messages(page)[-1]
        self.assertLess(n_first, len(answer["tokens"]))
        self.assertEqual(page.evaluate("document.querySelector('.tokens').textContent"), answer["content"])
        self.assertEqual("".join(text for text, _ in answer["tokens"]), answer["content"])
        origins = [origin for _, origin in answer["tokens"]]
        self.assertIn("input", origins)
        self.assertEqual(page.evaluate("document.querySelectorAll('.tokens .from-input').length"), origins.count("input"))
        self.assertIn(f"this chat {origins.count('input')}", page.text("#legend"))
        numbers = page.text(".numbers")
        timings = answer["timings"]
        self.assertIn(f"{timings['predicted_n']} tokens in", numbers)
        self.assertIn("tokens per pass", numbers)
        self.assertIn(f"{timings['draft_n_accepted']} of {timings['draft_n']} drafted accepted", numbers)
        self.assertIn("ended by the limit", numbers)
        self.assertEqual(page.text("#model"), "small")

    def test_the_text_is_the_one_other_clients_get(self):
        self.choose(self.page, **GREEDY, system="Be short.", top_k="5", min_p="0.1")
        answer = self.answer(self.page, "Name three rivers.")
        messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Name three rivers."}]
        whole = self.server.post("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 32})
        self.assertEqual(answer["content"], whole["choices"][0]["message"]["content"])

    def test_stopping_and_having_it_again(self):
        page = self.page
        self.choose(page, max_tokens="900")
        self.ask(page, "Write a very long story about a river.")
        page.wait_until("document.querySelectorAll('.tokens span').length > 3")
        page.press("Escape")
        page.wait_until(IS_IDLE)
        self.assertIn("stopped", page.text(".numbers"))
        kept = self.messages(page)[-1]
        self.assertTrue(kept["content"])
        deadline = time.monotonic() + 20
        while self.n_busy() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.n_busy(), 0)
        self.choose(page, **GREEDY)
        self.assertEqual(page.evaluate("document.querySelector('.tokens').textContent"), kept["content"])
        self.click_button(page, "Regenerate")
        page.wait_until(IS_BUSY)
        page.wait_until(IS_IDLE)
        self.assertEqual(len(self.messages(page)), 2)
        self.assertEqual(len(self.messages(page)[-1]["tokens"]), 32)

    def test_the_button_stops_too(self):
        self.choose(self.page, max_tokens="900")
        self.ask(self.page, "Write a very long story about a lake.")
        self.page.wait_until("document.querySelector('.tokens span')")
        self.page.click("#send")
        self.page.wait_until(IS_IDLE)
        self.assertIn("stopped", self.page.text(".numbers"))

    def test_comparing_with_plain_decoding(self):
        page = self.page
        page.change_requests(lambda body: body | {"ignore_eos": True})
        self.choose(page, **GREEDY)
        self.answer(page, REPETITIVE)
        self.click_button(page, "Compare with plain decoding")
        page.wait_until("document.querySelector('.speeds')")
        other = self.messages(page)[-1]["other"]
        self.assertTrue(other["isSame"])
        self.assertNotIn("draft_n", other["timings"])
        self.assertEqual(other["timings"]["passes"], 32)
        words = page.text(".speeds")
        self.assertIn(f"{other['timings']['predicted_per_second']:.1f} tokens/s", words)
        self.assertRegex(words, r"[\d.]+ times as fast; the text is the same")

    def test_without_drafts_and_compared_by_itself(self):
        page = self.page
        self.choose(page, **GREEDY, speculative="none", compare=True)
        self.ask(page, "Name a lake.")
        page.wait_until("document.querySelector('.speeds')")
        answer = self.messages(page)[-1]
        self.assertEqual({origin for _, origin in answer["tokens"]}, {""})
        self.assertIn("no drafts", page.text(".numbers"))
        self.assertTrue(answer["other"]["isSame"])

    def test_what_was_said_and_chosen_survives_a_reload(self):
        page = self.page
        page.click("#open-settings")
        for name, value in {"system": "Be kind.", "temperature": "0", "max_tokens": "8", "top_p": "0.9"}.items():
            page.evaluate(f"document.getElementById('{name}').focus()")
            page.type(value)
        page.evaluate("document.getElementById('key').focus()")
        page.type("not needed")
        page.press("Enter")
        page.wait_until("!document.querySelector('dialog[open]')")
        answer = self.answer(page, "Hello")
        self.assertEqual(len(answer["tokens"]), 8)
        page.evaluate("document.querySelector('#view input[value=text]').click()")
        page.evaluate("document.querySelector('#text').focus()")
        page.type("half a thou")
        page.reload()
        self.assertEqual(page.evaluate("document.querySelector('#text').value"), "half a thou")
        self.assertIn("Hello", page.text(".user"))
        page.wait_until("document.querySelector('.body.written')")
        names = ["system", "temperature", "max_tokens", "top_p", "key"]
        fields = page.evaluate(f"{names}.map(id => document.getElementById(id).value)")
        self.assertEqual(fields, ["Be kind.", "0", "8", "0.9", "not needed"])
        self.assertNotIn("not needed", page.evaluate("JSON.stringify(localStorage)"))

    def test_an_answer_that_comes_while_the_page_is_left(self):
        self.choose(self.page, max_tokens="900")
        self.ask(self.page, "Write a very long story about a sea.")
        self.page.wait_until("document.querySelectorAll('.tokens span').length > 3")
        self.page.reload()
        self.assertIn("stopped", self.page.text(".numbers"))
        self.assertGreater(len(self.messages(self.page)[-1]["tokens"]), 3)

    def test_several_chats(self):
        page = self.page
        self.choose(page, temperature="0", max_tokens="4")
        self.answer(page, "First question")
        page.click("#new-chat")
        self.assertEqual(page.evaluate("document.querySelectorAll('.message').length"), 0)
        self.answer(page, "Second question")
        page.click("#open-chats")
        titles = "[...document.querySelectorAll('#chat-list .open')].map(one => one.textContent)"
        self.assertEqual(page.evaluate(titles), ["Second question", "First question"])
        page.evaluate("document.querySelectorAll('#chat-list .open')[1].click()")
        self.assertEqual(page.text(".user"), "First question")
        page.click("#open-chats")
        for _ in range(2):
            self.assertIn("First question", page.evaluate("JSON.stringify(localStorage)"))
            page.evaluate("document.querySelector('#chat-list [aria-label*=First]').click()")
        self.assertEqual(page.evaluate(titles), ["Second question"])
        self.assertEqual(page.evaluate("document.querySelectorAll('.message').length"), 0)
        self.assertNotIn("First question", page.evaluate("JSON.stringify(localStorage)"))

    def test_the_keyboard_alone(self):
        page = self.page
        self.choose(page, temperature="0", max_tokens="4")
        self.assertEqual(page.evaluate("document.activeElement.id"), "text")
        page.type("one")
        page.press("Enter", SHIFT)
        page.type("two")
        page.press("Enter")
        page.wait_until(f"document.querySelector('.numbers') && {IS_IDLE}")
        self.assertEqual(self.messages(page)[0]["content"], "one\ntwo")
        page.wait_until("document.querySelector('#announcer').textContent.startsWith('Answer: ')")
        visited = self.tab_through(page)
        for wanted in ("new-chat", "open-chats", "open-settings", "chat", "text", "send", "Copy", "Regenerate", "view"):
            self.assertIn(wanted, visited)
        page.evaluate("document.querySelector('#open-settings').focus()")
        page.press("Enter")
        page.wait_until("document.querySelector('dialog#settings[open]')")
        page.press("Escape")
        page.wait_until("!document.querySelector('dialog[open]')")
        self.assertEqual(page.evaluate("document.activeElement.id"), "open-settings")
        page.evaluate("document.querySelector('#view input:checked').focus()")
        page.press("ArrowRight")
        page.wait_until("document.querySelector('.body.written')")

    def tab_through(self, page: Page) -> set[str]:
        visited = set()
        for _ in range(24):
            page.press("Tab")
            name, is_marked = page.evaluate("""(() => {
                const one = document.activeElement;
                const marked = one.name === "view" ? one.closest("fieldset") : one;
                const style = getComputedStyle(marked);
                const isMarked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
                return [one.name || one.id || one.textContent, isMarked || one === document.body];
            })()""")
            self.assertTrue(is_marked, f"{name} does not show that it has the focus")
            visited.add(name)
        return visited

    def test_everything_has_a_name(self):
        self.page.evaluate("document.querySelector('#settings').showModal()")
        controls = self.page.named_controls()
        self.page.evaluate("document.querySelector('#settings').close()")
        controls += self.page.named_controls()
        self.assertGreater(len(controls), 15)
        nameless = [role for role, name in controls if not name and role not in ("RootWebArea", "dialog")]
        self.assertEqual(nameless, [])

    def test_the_load_of_the_server(self):
        page = self.page
        self.assertTrue(page.wait_until("document.querySelector('#load').checkVisibility()"))
        other = OtherClient(self.server)
        other.start()
        page.wait_until("document.querySelector('#load-running').textContent === '1 running'")
        other.stop()
        self.assertTrue(page.evaluate("document.querySelector('#load-graph .running').getAttribute('d')"))
        page.wait_until("document.querySelector('#load-running').textContent === '0 running'")
        # Nobody looks.
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        time.sleep(1.5)
        n_before = len(page.urls)
        time.sleep(2.5)
        self.assertEqual(len(page.urls), n_before)
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        deadline = time.monotonic() + 10
        while len(page.urls) == n_before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertGreater(len(page.urls), n_before)

    def test_markup_that_a_model_writes_is_text(self):
        page = self.page
        evil = ('<img src=x onerror="window.isRun=1"> <script>window.isRun=1</script> '
                "[click](javascript:window.isRun=1) ![image](http://203.0.113.1/x.png)")  # fmt: skip
        page.change_requests(lambda body: body | {"grammar": f"root ::= {json.dumps(evil)}"})
        self.choose(page, max_tokens="120")
        answer = self.answer(page, evil)
        self.assertEqual(answer["content"], evil)
        for view in ("tokens", "text"):
            page.evaluate(f"document.querySelector('#view input[value={view}]').click()")
            self.assertIn('<img src=x onerror="window.isRun=1"> <script>', page.text(".answer .body"))
            self.assertEqual(page.evaluate("document.querySelectorAll('main img, main script, main iframe').length"), 0)
            self.assertEqual(page.evaluate("document.querySelectorAll('main a:not([href^=http])').length"), 0)
        self.assertIsNone(page.evaluate("window.isRun"))


if __name__ == "__main__":
    unittest.main()
