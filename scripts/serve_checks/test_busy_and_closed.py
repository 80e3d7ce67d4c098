"""Clients of a server that is full, and of one that asks for a key."""

import json
import threading
import time
import unittest

import anthropic
import openai

from served import CheckedServer

ASKED = {"model": "small", "messages": [{"role": "user", "content": "Name three rivers."}], "max_tokens": 8}
LONG = {"prompt": "Once upon a time", "n_predict": 1500, "ignore_eos": True, "speculative": False}


class FullServer(CheckedServer):
    """Answers one and lets one wait; both places are taken until release()."""

    def __init__(self) -> None:
        super().__init__("-c", 2048, "--parallel", 1, "--max-waiting", 1)

    def __enter__(self) -> "FullServer":
        super().__enter__()
        self.holders = []
        for n_requests in (1, 2):
            holder = self.connect()
            holder.request("POST", "/completion", json.dumps(LONG))
            self.holders.append(holder)
            self.wait_for_load(n_requests)
        return self

    def wait_for_load(self, n_requests: int) -> None:
        names = ("llamacpp:requests_processing", "llamacpp:requests_deferred")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            lines = [line.split() for line in self.ask("GET", "/metrics")[1].splitlines()]
            if sum(float(line[1]) for line in lines if line[0] in names) >= n_requests:
                return
            time.sleep(0.01)
        raise AssertionError("the server is not busy")

    def release(self) -> None:
        for holder in self.holders:
            holder.close()

    def __exit__(self, *rest) -> None:
        self.release()
        super().__exit__(*rest)


class BusyTest(unittest.TestCase):
    def test_clients_are_sent_away(self):
        with FullServer() as server:
            with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0) as client:
                with self.assertRaises(openai.InternalServerError) as raised:
                    client.chat.completions.create(**ASKED)
                self.assertEqual(raised.exception.status_code, 503)
                self.assertGreaterEqual(int(raised.exception.response.headers["Retry-After"]), 1)
            with anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="none", max_retries=0) as client:
                with self.assertRaises(anthropic.InternalServerError) as raised:
                    client.messages.create(**ASKED)
                self.assertEqual(raised.exception.body["error"]["type"], "overloaded_error")

    def test_clients_that_try_again_are_answered(self):
        with FullServer() as server:
            with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=60) as client:
                threading.Timer(2, server.release).start()
                answer = client.chat.completions.with_raw_response.create(**ASKED)
                self.assertGreaterEqual(answer.retries_taken, 1)
                self.assertTrue(answer.parse().choices[0].message.content)


class KeyTest(unittest.TestCase):
    def test_keys(self):
        with CheckedServer("-c", 256, "--api-key", "secret") as server:
            url = f"http://127.0.0.1:{server.port}"
            for key, is_right in {"secret": True, "wrong": False}.items():
                with (
                    openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as theirs,
                    anthropic.Anthropic(base_url=url, api_key=key, max_retries=0) as others,
                ):
                    if is_right:
                        self.assertTrue(theirs.chat.completions.create(**ASKED).choices)
                        self.assertTrue(others.messages.create(**ASKED).content)
                        continue
                    with self.assertRaises(openai.AuthenticationError) as raised:
                        theirs.chat.completions.create(**ASKED)
                    self.assertEqual(raised.exception.type, "authentication_error")
                    with self.assertRaises(anthropic.AuthenticationError) as raised:
                        others.messages.create(**ASKED)
                    self.assertEqual(raised.exception.body["error"]["type"], "authentication_error")


if __name__ == "__main__":
    unittest.main()
