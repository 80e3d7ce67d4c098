"""Messages through the client `anthropic`."""

import time
import unittest

import anthropic

from served import TOOLS_TEMPLATE, CheckedServer

RIVERS = {
    "model": "small",
    "max_tokens": 24,
    "messages": [{"role": "user", "content": "Name three rivers."}],
    "extra_body": {"temperature": 0},
}
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 16}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
}
CALL = RIVERS | {"messages": [{"role": "user", "content": "What is the weather in Paris?"}], "tools": [WEATHER],
                 "tool_choice": {"type": "any"}, "max_tokens": 96}  # fmt: skip


class AnthropicTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = CheckedServer("-c", 1024, "--alias", "small", "--chat-template-file", TOOLS_TEMPLATE).__enter__()
        cls.client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{cls.server.port}", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.server.__exit__(None)

    def test_a_message(self):
        message = self.client.messages.create(**RIVERS, system="Be brief.")
        self.assertEqual((message.type, message.role, message.model), ("message", "assistant", "small"))
        self.assertEqual(message.content[0].type, "text")
        self.assertTrue(message.content[0].text)
        self.assertIn(message.stop_reason, ("end_turn", "max_tokens"))
        self.assertGreater(message.usage.output_tokens, 0)
        blocks = [{"role": "user", "content": [{"type": "text", "text": "Name three rivers."}]}]
        again = self.client.messages.create(**(RIVERS | {"messages": blocks}), system=[{"type": "text", "text": "Be brief."}])
        self.assertEqual(again.content[0].text, message.content[0].text)
        n_read = again.usage.input_tokens + again.usage.cache_read_input_tokens
        self.assertEqual(n_read, message.usage.input_tokens + message.usage.cache_read_input_tokens)

    def test_a_message_in_parts(self):
        whole = self.client.messages.create(**RIVERS)
        with self.client.messages.stream(**RIVERS) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual((final.stop_reason, final.usage.output_tokens), (whole.stop_reason, whole.usage.output_tokens))
        events = [event.type for event in self.client.messages.create(**RIVERS, stream=True)]
        self.assertEqual(events[:2], ["message_start", "content_block_start"])
        self.assertEqual(events[-3:], ["content_block_stop", "message_delta", "message_stop"])

    def test_stops(self):
        whole = self.client.messages.create(**RIVERS).content[0].text
        word = whole.split()[3]
        message = self.client.messages.create(**RIVERS, stop_sequences=[word])
        self.assertEqual((message.stop_reason, message.stop_sequence), ("stop_sequence", word))
        self.assertEqual(message.content[0].text, whole[: whole.index(word)])

    def test_tools(self):
        message = self.client.messages.create(**CALL)
        (call,) = [block for block in message.content if block.type == "tool_use"]
        self.assertEqual((message.stop_reason, call.name, set(call.input)), ("tool_use", "get_weather", {"city", "days"}))
        self.assertTrue(call.id)
        with self.client.messages.stream(**CALL) as stream:
            (streamed,) = [block for block in stream.get_final_message().content if block.type == "tool_use"]
        self.assertEqual((streamed.name, streamed.input), (call.name, call.input))
        named = self.client.messages.create(**(CALL | {"tool_choice": {"type": "tool", "name": "get_weather"}}))
        self.assertEqual(named.content[-1].input, call.input)
        turns = [*CALL["messages"], {"role": "assistant", "content": [call.model_dump(include={"type", "id", "name", "input"})]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Sunny"}]}]  # fmt: skip
        answer = self.client.messages.create(**(CALL | {"messages": turns, "tool_choice": {"type": "none"}}))
        self.assertEqual(answer.content[0].type, "text")

    def test_tokens_are_counted(self):
        request = {"model": "small", "messages": RIVERS["messages"]}
        n_tokens = self.client.messages.count_tokens(**request).input_tokens
        usage = self.client.messages.create(**RIVERS).usage
        self.assertEqual(n_tokens, usage.input_tokens + usage.cache_read_input_tokens)
        self.assertGreater(self.client.messages.count_tokens(**request, tools=[WEATHER]).input_tokens, n_tokens)

    def test_errors(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
        for more in ({"messages": []}, {"max_tokens": -3}, {"messages": [{"role": "user", "content": [image]}]},
                     {"messages": [{"role": "user", "content": "word " * 2000}]}, {"extra_body": {"temperature": "hot"}},
                     {"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "nothing"}},
                     {"thinking": {"type": "enabled", "budget_tokens": 1024}, "extra_body": {"chat_template_kwargs": 3}}):  # fmt: skip
            with self.assertRaises(anthropic.BadRequestError, msg=str(more)) as raised:
                self.client.messages.create(**(RIVERS | more))
            body = raised.exception.body
            self.assertEqual((body["type"], body["error"]["type"]), ("error", "invalid_request_error"), more)
            self.assertTrue(body["error"]["message"])

    def test_a_stream_that_is_given_up(self):
        long = {"max_tokens": 900, "extra_body": {"ignore_eos": True, "speculative": False}}
        stream = self.client.messages.create(**(RIVERS | long), stream=True)
        while next(stream).type != "content_block_delta":
            pass
        self.assertEqual(self.server.n_busy(), 1)
        stream.close()
        begin = time.monotonic()
        self.server.wait_until_idle(10)
        self.assertLess(time.monotonic() - begin, 5)


if __name__ == "__main__":
    unittest.main()
