"""What the page says when a server does not answer, and that nothing is lost then."""

import unittest

from page_test_case import IS_BUSY, IS_IDLE, SMOLLM2, OtherClient, PageTestCase, setUpModule  # noqa: F401
from server import Server

NOTICE = "document.querySelector('#notice').textContent"
TROUBLE = "(document.querySelector('.trouble')?.textContent ?? '')"


class TroubleTest(PageTestCase):
    def test_keys(self):
        with Server("-m", SMOLLM2, "-c", 256, "--api-key", "secret") as server:
            page = self.open(server)
            page.wait_until(f"{NOTICE}.includes('asks for an API key')")
            self.choose(page, temperature="0", max_tokens="4")
            self.ask(page, "Hello there")
            page.wait_until(f"{TROUBLE}.includes('asks for an API key. Your message is kept.')")
            for key, outcome in {"wrong": "does not know this API key", "secret": ""}.items():
                self.click_button(page, "Enter a key")
                page.evaluate("document.querySelector('#key').value = ''; document.querySelector('#key').focus()")
                page.type(key)
                page.press("Enter")
                page.wait_until(f"{NOTICE}.includes('{outcome}')" if outcome else f"{NOTICE} === ''")
                self.click_button(page, "Try again")
                page.wait_until(IS_IDLE)
                page.wait_until(f"{TROUBLE}.includes('{outcome}')" if outcome else "document.querySelector('.tokens span')")
            page.wait_until(IS_IDLE)
            messages = self.messages(page)
            self.assertEqual([message["role"] for message in messages], ["user", "assistant"])
            self.assertEqual((messages[0]["content"], len(messages[1]["tokens"])), ("Hello there", 4))
            self.assertNotIn("secret", page.evaluate("JSON.stringify(localStorage)"))

    def test_a_server_that_has_no_time(self):
        with Server("-m", SMOLLM2, "-c", 1024, "--parallel", 1, "--max-waiting", 1) as server:
            page = self.open(server)
            self.choose(page, temperature="0", max_tokens="4")
            others = [OtherClient(server) for _ in range(2)]
            for other, state in zip(others, ("running", "waiting"), strict=True):
                other.start()
                page.wait_until(f"document.querySelector('#load-{state}').textContent === '1 {state}'")
            self.ask(page, "Hello")
            page.wait_until(r"/too many requests already. Asking again in \d s/.test(document.querySelector('.answer').textContent)")
            for other in others:
                other.stop()
            page.wait_until(f"document.querySelectorAll('.tokens span').length === 4 && {IS_IDLE}")

    def test_a_server_that_goes_away(self):
        with Server("-m", SMOLLM2, "-c", 1024) as server:
            page = self.open(server)
            self.choose(page, max_tokens="900")
            self.ask(page, "Write a very long story.")
            page.wait_until("document.querySelectorAll('.tokens span').length > 3")
            server.process.kill()
            page.wait_until(f"{TROUBLE}.includes('What came of the answer is kept.') && {IS_IDLE}")
            user, answer = self.messages(page)
            self.assertEqual(user["content"], "Write a very long story.")
            self.assertGreater(len(answer["tokens"]), 3)
            page.wait_until(f"{NOTICE}.includes('cannot be reached')")
            self.ask(page, "Are you there?")
            page.wait_until(f"document.querySelectorAll('.trouble').length === 2 && {IS_IDLE}")
            self.assertEqual(self.messages(page)[2]["content"], "Are you there?")

    def test_what_the_server_refuses(self):
        with Server("-m", SMOLLM2, "-c", 256, "--no-metrics") as server:
            page = self.open(server)
            self.choose(page, speculative="draft")
            self.ask(page, "Hello")
            said = page.wait_until(TROUBLE)
            self.assertIn("--draft-model", said)
            page.wait_until(IS_IDLE)
            self.ask(page, "word " * 400)
            page.wait_until(f"document.querySelectorAll('.trouble').length === 2 && !({IS_BUSY})")
            self.assertFalse(page.evaluate("document.querySelector('#load').checkVisibility()"))


if __name__ == "__main__":
    unittest.main()
