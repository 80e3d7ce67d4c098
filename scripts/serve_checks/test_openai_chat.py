"""Chats and completions through the client `openai`."""

import json
import time
import unittest

import openai
from pydantic import BaseModel, Field

from served import CheckedServer

RIVERS = [{"role": "user", "content": "Name three rivers."}]
GREEDY = {"model": "small", "messages": RIVERS, "max_tokens": 24, "temperature": 0}


class River(BaseModel):
    name: str = Field(max_length=12)
    is_long: bool


class OpenAiChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = CheckedServer("-c", 1024, "--parallel", 4, "--alias", "small").__enter__()
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.server.__exit__(None)

    def ask(self, **more):
        return self.client.chat.completions.create(**(GREEDY | more))

    def text(self, **more) -> str:
        return self.ask(**more).choices[0].message.content

    # ---- Texts ----

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["small"])

    def test_a_chat(self):
        answer = self.ask()
        choice = answer.choices[0]
        self.assertEqual((answer.object, answer.model, choice.message.role), ("chat.completion", "small", "assistant"))
        self.assertTrue(choice.message.content)
        self.assertIn(choice.finish_reason, ("stop", "length"))
        usage = answer.usage
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertLessEqual(usage.completion_tokens, 24)

    def test_content_in_parts(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "Name three rivers."}]}]
        self.assertEqual(self.text(messages=parts), self.text())

    def test_a_stream_with_usage(self):
        chunks = list(self.ask(stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        whole = self.ask()
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual({chunk.id for chunk in chunks}, {chunks[0].id})
        without = list(self.ask(stream=True))
        self.assertTrue(all(chunk.usage is None for chunk in without))

    def test_streams_of_several_choices(self):
        texts = ["", "", ""]
        for chunk in self.ask(stream=True, n=3, seed=5, temperature=1):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
        whole = self.ask(n=3, seed=5, temperature=1)
        self.assertEqual(texts, [choice.message.content for choice in whole.choices])
        self.assertEqual(len(set(texts)), 3)

    def test_the_helper_for_streams(self):
        # It takes an answer that was cut off for an error.
        short = GREEDY | {"stop": ["."], "max_tokens": 200}
        with self.client.chat.completions.stream(**short) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
            final = stream.get_final_completion()
        self.assertEqual(text, self.text(**short))
        self.assertEqual(final.choices[0].message.content, text)

    def test_seeds(self):
        first = self.text(seed=1, temperature=1)
        self.assertEqual(self.text(seed=1, temperature=1), first)
        self.assertNotEqual(self.text(seed=2, temperature=1), first)

    def test_stops(self):
        whole = self.text()
        word = whole.split()[3]
        for stop in (word, ["not there", word]):
            answer = self.ask(stop=stop)
            self.assertEqual(answer.choices[0].message.content, whole[: whole.index(word)])
            self.assertEqual(answer.choices[0].finish_reason, "stop")

    def test_log_probabilities(self):
        choice = self.ask(logprobs=True, top_logprobs=3).choices[0]
        entries = choice.logprobs.content
        self.assertEqual(b"".join(bytes(entry.bytes) for entry in entries).decode(), choice.message.content)
        for entry in entries:
            self.assertLessEqual(entry.logprob, 0)
            self.assertEqual(len(entry.top_logprobs), 3)
            self.assertEqual(entry.top_logprobs[0].token, entry.token)  # greedy: the likeliest
        streamed = []
        for chunk in self.ask(logprobs=True, top_logprobs=3, stream=True):
            if chunk.choices and chunk.choices[0].logprobs:
                streamed += chunk.choices[0].logprobs.content
        self.assertEqual([entry.token for entry in streamed], [entry.token for entry in entries])

    def test_a_prediction(self):
        plain = self.ask(extra_body={"speculative": False})
        text = plain.choices[0].message.content
        for content in (text, [{"type": "text", "text": text}]):
            answer = self.ask(prediction={"type": "content", "content": content})
            self.assertEqual(answer.choices[0].message.content, text)
            details = answer.usage.completion_tokens_details
            self.assertGreater(details.accepted_prediction_tokens, 8)
            self.assertGreaterEqual(details.rejected_prediction_tokens, 0)
        wrong = self.ask(prediction={"type": "content", "content": "Nothing of the kind."})
        self.assertEqual(wrong.choices[0].message.content, text)

    def test_completions(self):
        request = {"model": "small", "prompt": ["One two", "Three four"], "max_tokens": 8, "n": 2, "seed": 3}
        answer = self.client.completions.create(**request)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(answer.usage.completion_tokens, 32)
        texts = ["", "", "", ""]
        for chunk in self.client.completions.create(**request, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.text
        self.assertEqual(texts, [choice.text for choice in answer.choices])

    # ---- What an answer looks like ----

    def test_a_schema(self):
        parsed = self.client.chat.completions.parse(**(GREEDY | {"max_tokens": 64}), response_format=River)
        river = parsed.choices[0].message.parsed
        self.assertIsInstance(river, River)
        with self.client.chat.completions.stream(**(GREEDY | {"max_tokens": 64}), response_format=River) as stream:
            self.assertEqual(stream.get_final_completion().choices[0].message.parsed, river)
        plain = self.ask(max_tokens=64, response_format={"type": "json_schema", "json_schema": {
            "name": "river", "schema": River.model_json_schema()}})  # fmt: skip
        self.assertEqual(River.model_validate_json(plain.choices[0].message.content), river)
        anything = self.ask(max_tokens=300, response_format={"type": "json_object"}, seed=4, temperature=0.5)
        if anything.choices[0].finish_reason == "stop":
            self.assertIsInstance(json.loads(anything.choices[0].message.content), dict)

    # ---- What is wrong ----

    def test_errors(self):
        for more in ({"messages": []}, {"temperature": "hot"}, {"n": 0}, {"logit_bias": {"x": "y"}},
                     {"messages": [{"role": "user", "content": "word " * 2000}]},
                     {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strnig"}}}},
                     {"extra_body": {"speculative": "magic"}}):  # fmt: skip
            with self.assertRaises(openai.BadRequestError, msg=str(more)) as raised:
                self.ask(**more)
            self.assertTrue(raised.exception.body["message"])
            self.assertIn(raised.exception.type, ("invalid_request_error", "exceed_context_size_error"))
        with self.assertRaises(openai.NotFoundError):
            self.client.moderations.create(input="x")
        with self.assertRaises(openai.BadRequestError):
            self.ask(stream=True, messages=[])  # the status says so, not the stream

    def test_a_stream_that_is_given_up(self):
        stream = self.ask(stream=True, max_tokens=900, extra_body={"ignore_eos": True, "speculative": False})
        next(stream)
        self.assertEqual(self.server.n_busy(), 1)
        stream.close()
        begin = time.monotonic()
        self.server.wait_until_idle(10)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertTrue(self.text())


if __name__ == "__main__":
    unittest.main()
