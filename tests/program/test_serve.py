"""forerun serve, as clients use it."""

import json
import os
import re
import socket
import tempfile
import threading
import time
import unittest
from pathlib import Path

from program import QUICK, model, run
from server import Server

SMOLLM2 = model("smollm2")
PROMPT = "Once upon a time there was a"
GREEDY = {"prompt": PROMPT, "n_predict": 24, "temperature": 0}
CHAT = {"messages": [{"role": "user", "content": "Name three rivers."}], "max_tokens": 24, "temperature": 0}


def text_of_run(*flags) -> str:
    result = run("run", "-m", SMOLLM2, "--raw", "--json", *QUICK, *map(str, flags), PROMPT)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["text"]


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("-m", SMOLLM2, "-c", 1024, "--parallel", 4, "--alias", "small").__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()

    # ---- Answers ----

    def test_texts_are_those_of_the_command_line(self):
        self.assertEqual(self.server.post("/completion", GREEDY)["content"], text_of_run("-n", 24, "--temp", 0))
        sampled = {"prompt": PROMPT, "n_predict": 24, "seed": 7}
        self.assertEqual(self.server.post("/completion", sampled)["content"], text_of_run("-n", 24, "--seed", 7))

    def test_texts_do_not_depend_on_others_or_on_drafts(self):
        requests = [{"prompt": f"{i} and {i + 1} and", "n_predict": 32, "seed": i, "temperature": i % 2 * 0.8}
                    for i in range(12)]  # fmt: skip
        alone = [self.server.post("/completion", request | {"speculative": False, "cache_prompt": False})["content"]
                 for request in requests]  # fmt: skip
        together: list = [None] * len(requests)

        def ask(i: int) -> None:
            together[i] = self.server.post("/completion", requests[i])["content"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(requests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_streams_are_the_answer_in_parts(self):
        whole = self.server.post("/completion", GREEDY | {"return_tokens": True})
        events = list(self.server.stream("/completion", GREEDY))
        self.assertEqual("".join(event["content"] for event in events), whole["content"])
        self.assertEqual(sum((event["tokens"] for event in events), []), whole["tokens"])
        self.assertTrue(events[-1]["stop"])
        self.assertEqual(events[-1]["stop_type"], "limit")
        self.assertEqual(events[-1]["timings"]["predicted_n"], 24)

    def test_an_event_has_one_token_where_probabilities_are_wanted(self):
        events = list(self.server.stream("/completion", GREEDY | {"n_probs": 3}))[:-1]
        self.assertEqual(len(events), 24)
        for event in events:
            (entry,) = event["completion_probabilities"]
            self.assertEqual(event["tokens"], [entry["id"]])
            self.assertEqual(len(entry["top_logprobs"]), 3)

    def test_completions_of_openai(self):
        answer = self.server.post("/v1/completions", {"prompt": [PROMPT, "One two"], "max_tokens": 8, "n": 2, "seed": 1})
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"]["completion_tokens"], 32)
        self.assertNotEqual(answer["choices"][0]["text"], answer["choices"][1]["text"])

    def test_chats(self):
        whole = self.server.post("/v1/chat/completions", CHAT)
        message = whole["choices"][0]["message"]
        self.assertEqual(message["role"], "assistant")
        events = list(self.server.stream("/v1/chat/completions", CHAT | {"stream_options": {"include_usage": True}}))
        self.assertEqual(events[0]["choices"][0]["delta"], {"role": "assistant", "content": None})
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[-2]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])
        text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events[:-2])
        self.assertEqual(text, message["content"])
        again = self.server.post("/v1/chat/completions", CHAT)
        self.assertEqual(again["choices"][0]["message"], message)
        self.assertEqual(again["usage"]["prompt_tokens_details"]["cached_tokens"], again["usage"]["prompt_tokens"] - 1)

    def test_what_an_answer_must_look_like(self):
        schema = {"type": "object", "properties": {"river": {"type": "string", "maxLength": 12}},
                  "required": ["river"], "additionalProperties": False}  # fmt: skip
        wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
        for more in ({}, {"speculative": False}, {"temperature": 1.5, "seed": 3}):
            answer = self.server.post("/v1/chat/completions", CHAT | {"response_format": wanted, "max_tokens": 64} | more)
            self.assertEqual(list(json.loads(answer["choices"][0]["message"]["content"])), ["river"])
        grammar = 'root ::= ("yes" | "no") "!"'
        drafted = self.server.post("/completion", GREEDY | {"grammar": grammar})
        self.assertIn(drafted["content"], ["yes!", "no!"])
        self.assertEqual(drafted["stop_type"], "eos")
        plain = self.server.post("/completion", GREEDY | {"grammar": grammar, "speculative": False})
        self.assertEqual(plain["content"], drafted["content"])

    def test_what_a_grammar_forces_may_be_drafted(self):
        grammar = 'root ::= "{\\"the_name_of_the_river\\":\\"" [A-Z] [a-z]* "\\"}"'
        drafted = self.server.post("/completion", GREEDY | {"grammar": grammar})
        plain = self.server.post("/completion", GREEDY | {"grammar": grammar, "speculative": False})
        self.assertEqual(plain["content"], drafted["content"])
        self.assertTrue(set(drafted["origins"]) <= {None, "input", "grammar"})

    def test_how_far_a_prompt_is_read(self):
        request = {"prompt": "a b c d " * 40, "n_predict": 4, "stream": True, "return_progress": True,
                   "timings_per_token": True, "cache_prompt": False}  # fmt: skip
        events = list(self.server.stream("/completion", request))
        told = [event["prompt_progress"] for event in events if "prompt_progress" in event]
        self.assertEqual((told[0]["processed"], told[0]["cache"]), (0, 0))
        self.assertEqual(told[-1]["processed"], told[-1]["total"])
        times = [event["timings"] for event in events if event.get("tokens")]
        self.assertEqual(times[-1]["predicted_n"], 4)
        chat = CHAT | {"stream": True, "return_progress": True}
        self.assertTrue(any("prompt_progress" in event for event in self.server.stream("/v1/chat/completions", chat)))

    def test_probabilities_of_draws(self):
        request = GREEDY | {"temperature": 1, "seed": 1, "n_predict": 4, "n_probs": 3, "post_sampling_probs": True}
        for token in self.server.post("/completion", request)["completion_probabilities"]:
            self.assertGreater(token["prob"], 0)
            self.assertLessEqual(sum(other["prob"] for other in token["top_probs"]), 1.0001)

    def test_stops(self):
        whole = self.server.post("/completion", GREEDY)["content"]
        word = whole.split()[5]
        cut = self.server.post("/completion", GREEDY | {"stop": [word]})
        self.assertEqual(cut["content"], whole[: whole.index(word)])
        self.assertEqual((cut["stop_type"], cut["stopping_word"]), ("word", word))

    def test_how_to_speculate(self):
        text = ("one two three four five " * 8).strip()
        request = {"prompt": text, "n_predict": 32, "temperature": 0}
        drafted = self.server.post("/completion", request | {"speculative": "pld"})
        self.assertGreater(drafted["timings"]["draft_n_accepted"], 0)
        self.assertLess(drafted["timings"]["passes"], 32)
        self.assertIn("input", drafted["origins"])
        plain = self.server.post("/completion", request | {"speculative": False})
        self.assertNotIn("draft_n", plain["timings"])
        self.assertEqual(plain["timings"]["passes"], 32)
        self.assertEqual(plain["content"], drafted["content"])
        status, answer, _ = self.server.ask("POST", "/completion", request | {"speculative": "magic"})
        self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))

    def test_what_an_answer_is_expected_to_be(self):
        plain = self.server.post("/v1/chat/completions", CHAT | {"speculative": False})
        text = plain["choices"][0]["message"]["content"]
        drafted = self.server.post("/v1/chat/completions", CHAT | {"prediction": {"type": "content", "content": text}})
        self.assertEqual(drafted["choices"][0]["message"]["content"], text)
        self.assertGreater(drafted["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 8)
        self.assertIn("prediction", drafted["choices"][0]["origins"])
        self.assertLess(drafted["timings"]["passes"], plain["timings"]["passes"])

    def test_tokens(self):
        tokens = self.server.post("/tokenize", {"content": "Hello world"})["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})["content"], "Hello world")
        pieces = self.server.post("/tokenize", {"content": "Hello world", "with_pieces": True})["tokens"]
        self.assertEqual("".join(piece["piece"] for piece in pieces), "Hello world")
        prompt = self.server.post("/apply-template", CHAT)["prompt"]
        self.assertIn("Name three rivers.", prompt)

    # ---- What it says of itself ----

    def test_facts(self):
        self.assertEqual(self.server.ask("GET", "/health")[:2], (200, {"status": "ok"}))
        models = self.server.ask("GET", "/v1/models")[1]["data"]
        self.assertEqual([entry["id"] for entry in models], ["small"])
        props = self.server.ask("GET", "/props")[1]
        self.assertEqual((props["total_slots"], props["default_generation_settings"]["n_ctx"]), (4, 1024))
        self.assertEqual(len(self.server.ask("GET", "/slots")[1]), 4)
        self.server.post("/completion", GREEDY)
        metrics = self.server.ask("GET", "/metrics")[1]
        self.assertRegex(metrics, r"(?m)^llamacpp:tokens_predicted_total \d+$")
        self.assertRegex(metrics, r'(?m)^forerun:accepted_tokens_total\{source="input"\} \d+$')
        self.assertRegex(metrics, r"(?m)^forerun:saved_seconds -?[\d.e-]+$")

    # ---- What is wrong ----

    def test_requests_that_make_no_sense(self):
        for path, body in {
            "/completion": [b"", b"{", b"[]", b'{"prompt": 3.5}', b'{"prompt": "x", "temperature": "hot"}',
                            b'{"prompt": "x", "n_predict": 1e99}', b'{"prompt": [1, 2, 100000000]}',
                            b'{"prompt": "\xff"}', b"[" * 100_000, b'{"prompt": "x", "grammar": "root ::= ("}',
                            b'{"prompt": "x", "grammar": "root ::= ' + b"(" * 100_000 + b'"}'],
            "/v1/chat/completions": [b"{}", b'{"messages": []}', b'{"messages": [3]}', b'{"messages": [{"role": 3}]}',
                                     b'{"messages": [{"role": "user", "content": 3}]}'],
            "/tokenize": [b"{}", b'{"content": 3}'],
            "/detokenize": [b'{"tokens": ["x"]}', b'{"tokens": [-5]}', b'{"tokens": [4294967297]}'],
            "/v1/messages": [b'{"max_tokens": 1, "messages": [{"role": "user", "content": "x"}],'
                             b' "thinking": {"type": "enabled"}, "chat_template_kwargs": 3}'],
        }.items():  # fmt: skip
            for one in body:
                status, answer, _ = self.server.ask("POST", path, one)
                self.assertEqual(status, 400, (path, one, answer))
                self.assertEqual(answer["error"]["type"], "invalid_request_error")
        status, answer, _ = self.server.ask("POST", "/completion", {"prompt": "word " * 2000})
        self.assertEqual((status, answer["error"]["type"]), (400, "exceed_context_size_error"))
        self.assertEqual(answer["error"]["n_ctx"], 1024)
        self.assertEqual(self.server.ask("GET", "/nothing")[0], 404)
        status, _, headers = self.server.ask("GET", "/completion")
        self.assertEqual((status, headers["Allow"]), (405, "POST, OPTIONS"))

    def test_bytes_that_are_no_requests(self):
        for data in (b"\0" * 64, b"GET / HTTP/9.9\r\n\r\n", b"X" * 200_000, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
                     b"POST /completion HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                     b"GET /%zz HTTP/1.1\r\n\r\n", b"POST /completion HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf"):  # fmt: skip
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(4096)
            self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 4"), (data[:40], answer))
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)

    def test_a_client_who_leaves_frees_its_place(self):
        def n_busy() -> int:
            return sum(slot["is_processing"] for slot in self.server.ask("GET", "/slots")[1])

        request = json.dumps({"prompt": PROMPT, "ignore_eos": True, "n_predict": 900}).encode()
        head = b"POST /completion HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(request)
        connections = []
        for _ in range(4):
            connection = socket.create_connection(("127.0.0.1", self.server.port))
            connection.sendall(head + request)
            connections.append(connection)
        deadline = time.monotonic() + 10
        while n_busy() < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(n_busy(), 4)
        for connection in connections:
            connection.close()
        deadline = time.monotonic() + 10
        while n_busy() > 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(n_busy(), 0)

    def test_half_a_request_is_forgotten_when_its_client_leaves(self):
        begin = time.monotonic()
        for data in (b"POST /completion HTTP/1.1\r\nContent-", b"POST /completion HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                self.assertEqual(connection.recv(4096), b"")
        self.assertLess(time.monotonic() - begin, 20)

    def test_what_was_answered_is_not_kept(self):
        def rss_mb() -> float:
            with open(f"/proc/{self.server.process.pid}/statm") as file:
                return int(file.read().split()[1]) * 4096 / 1e6

        request = GREEDY | {"n_predict": 1, "ignored": "x" * 200_000}
        for _ in range(20):
            self.server.post("/completion", request)
        before = rss_mb()
        for _ in range(200):
            self.server.post("/completion", request)
        self.assertLess(rss_mb() - before, 20)

    def test_requests_one_after_the_other_on_a_connection(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/completion", json.dumps(GREEDY | {"n_predict": 2}))
            self.assertEqual(json.loads(connection.getresponse().read())["tokens_predicted"], 2)
        connection.close()
        # Two at once: the second waits for the first.
        body = json.dumps(GREEDY | {"n_predict": 2}).encode()
        one = b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as pipeline:
            pipeline.sendall(one + one)
            answer = b""
            while answer.count(b'"tokens_predicted":2') < 2:
                part = pipeline.recv(65536)
                self.assertTrue(part, answer)
                answer += part


class OtherServersTest(unittest.TestCase):
    def test_keys_and_origins(self):
        with Server("-m", SMOLLM2, "-c", 256, "--api-key", "secret", "--cors-origins", "localhost") as server:
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
            for headers in ({"Authorization": "Bearer secret"}, {"X-Api-Key": "secret"}):
                self.assertEqual(server.ask("GET", "/v1/models", headers=headers)[0], 200)
            for headers in ({"Authorization": "Bearer wrong"}, {"X-Api-Key": ""}, {"Authorization": "secret"}):
                status, answer, _ = server.ask("GET", "/v1/models", headers=headers)
                self.assertEqual((status, answer["error"]["type"]), (401, "authentication_error"))
            status, answer, headers = server.ask("POST", "/v1/messages", {})
            self.assertEqual((status, answer["type"], headers["WWW-Authenticate"]), (401, "error", "Bearer"))
            for origin, is_allowed in {"http://localhost:3000": True, "http://localhost.evil.com": False}.items():
                status, _, headers = server.ask("OPTIONS", "/completion", headers={"Origin": origin})
                self.assertEqual(status, 200)
                self.assertEqual(headers.get("Access-Control-Allow-Origin"), origin if is_allowed else None)

    def test_tenants_share_no_datastore(self):
        with tempfile.TemporaryDirectory() as folder:
            tenants = Path(folder) / "tenants.json"
            tenants.write_text(json.dumps({
                "a": {"keys": ["of a"], "live_datastore": "a.store"}, "b": {"keys": ["of b"], "live_datastore": "b.store"},
                "c": {"keys": ["of c"]},
            }))  # fmt: skip
            flags = ["--tenants", tenants, "--api-key", "of all", "--live-datastore", Path(folder) / "all.store"]
            with Server("-m", SMOLLM2, "-c", 512, *flags, "--spec", "sssd", "--tree", "own") as server:

                def origins(key: str, **more) -> set:
                    request = GREEDY | {"n_predict": 48, "cache_prompt": False} | more
                    status, answer, _ = server.ask("POST", "/completion", request, {"X-Api-Key": key})
                    self.assertEqual(status, 200)
                    return set(answer["origins"])

                self.assertNotIn("datastore", origins("of a"))
                self.assertIn("datastore", origins("of a"))
                self.assertNotIn("datastore", origins("of b"))
                for _ in range(2):
                    self.assertNotIn("datastore", origins("of c"))
                    self.assertNotIn("datastore", origins("of c", speculative="none"))
                self.assertNotIn("datastore", origins("of all"))
                self.assertIn("datastore", origins("of all"))
                self.assertEqual(server.ask("GET", "/v1/models", headers={"X-Api-Key": "of d"})[0], 401)
            self.assertEqual({path.name for path in Path(folder).iterdir()}, {"tenants.json", "a.store", "b.store", "all.store"})

    def test_those_past_the_queue_are_sent_away(self):
        with Server("-m", SMOLLM2, "-c", 1024, "--parallel", 1, "--max-waiting", 2) as server:
            request = {"prompt": PROMPT, "ignore_eos": True, "n_predict": 100}
            results: list = []
            threads = [
                threading.Thread(target=lambda: results.append(server.ask("POST", "/completion", request)))
                for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            refused = [headers for status, _, headers in results if status == 503]
            self.assertTrue(refused)
            self.assertTrue(all(headers["Retry-After"] for headers in refused))
            self.assertGreaterEqual(sum(status == 200 for status, _, _ in results), 3)

    def test_a_server_that_is_asked_to_end_finishes_its_answers(self):
        with Server("-m", SMOLLM2, "-c", 1024) as server:
            events = server.stream("/completion", {"prompt": PROMPT, "ignore_eos": True, "n_predict": 200})
            next(events)
            server.process.terminate()
            self.assertEqual(list(events)[-1]["tokens_predicted"], 200)
            self.assertEqual(server.process.wait(timeout=30), 0)  # a second signal would end it at once

    def test_few_cells_for_many(self):
        with Server("-m", SMOLLM2, "-c", 256, "--cells", 512, "--parallel", 8) as server:
            requests = [{"prompt": f"{i}, {i + 1},", "n_predict": 120, "temperature": 0, "ignore_eos": True}
                        for i in range(8)]  # fmt: skip
            alone = [server.post("/completion", request)["content"] for request in requests]
            together: list = [None] * 8

            def ask(i: int) -> None:
                together[i] = server.post("/completion", requests[i])["content"]

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(together, alone)

    def test_the_cache_is_no_larger_than_memory(self):
        with Server("-m", SMOLLM2, "-c", 8192, "--parallel", 256) as server:
            n_cells = int(re.search(r"\nforerun:cells (\d+)", server.ask("GET", "/metrics")[1])[1])
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            cell_bytes = 30 * 2 * 192 * 2  # layers, keys and values, width, halves
            self.assertGreaterEqual(n_cells, 8192)
            self.assertLessEqual(n_cells, min(8192 * 256, memory // cell_bytes))
            self.assertTrue(server.post("/completion", {"prompt": PROMPT, "n_predict": 4})["content"])


if __name__ == "__main__":
    unittest.main()
