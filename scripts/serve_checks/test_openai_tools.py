"""Tools, and the responses interface, through the client `openai`."""

import json
import unittest

import openai
from pydantic import BaseModel, Field

from served import TOOLS_TEMPLATE, CheckedServer

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 16},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
ASKED = {
    "model": "small",
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": [WEATHER, TIME],
    "max_tokens": 96,
    "temperature": 0,
}
RESPONSE = {"model": "small", "input": "Name three rivers.", "max_output_tokens": 24, "temperature": 0}


class River(BaseModel):
    name: str = Field(max_length=12)


class OpenAiToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = CheckedServer("-c", 2048, "--alias", "small", "--chat-template-file", TOOLS_TEMPLATE).__enter__()
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.server.__exit__(None)

    def ask(self, **more):
        return self.client.chat.completions.create(**(ASKED | more))

    def check_call(self, call, name: str = "get_weather") -> None:
        self.assertEqual((call.type, call.function.name), ("function", name))
        self.assertTrue(call.id)
        arguments = json.loads(call.function.arguments)
        if name == "get_weather":
            self.assertEqual(set(arguments), {"city", "unit"})
            self.assertIn(arguments["unit"], ("celsius", "fahrenheit"))

    # ---- Chats ----

    def test_a_tool_must_be_called(self):
        for more in ({}, {"temperature": 1, "seed": 3}, {"extra_body": {"speculative": False}}):
            choice = self.ask(tool_choice="required", **more).choices[0]
            self.assertEqual(choice.finish_reason, "tool_calls")
            self.assertEqual(len(choice.message.tool_calls), 1)
            call = choice.message.tool_calls[0]
            self.check_call(call, call.function.name)

    def test_a_tool_that_is_named(self):
        for tool in (WEATHER, TIME):
            name = tool["function"]["name"]
            choice = self.ask(tool_choice={"type": "function", "function": {"name": name}}).choices[0]
            self.check_call(choice.message.tool_calls[0], name)

    def test_a_call_comes_in_parts(self):
        request = {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
        whole = self.ask(**request).choices[0].message.tool_calls[0]
        name, arguments, ids, reason = "", "", set(), None
        for chunk in self.ask(stream=True, **request):
            for choice in chunk.choices:
                reason = choice.finish_reason or reason
                for call in choice.delta.tool_calls or []:
                    self.assertEqual(call.index, 0)
                    ids |= {call.id} - {None}
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
        self.assertEqual((name, arguments, reason), ("get_weather", whole.function.arguments, "tool_calls"))
        self.assertEqual(len(ids), 1)

    def test_the_helper_for_streams(self):
        request = ASKED | {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
        with self.client.chat.completions.stream(**request) as stream:
            final = stream.get_final_completion().choices[0].message.tool_calls[0]
        self.check_call(final)

    def test_tools_that_need_not_be_called(self):
        for choice in ("auto", "none"):
            message = self.ask(tool_choice=choice).choices[0].message
            self.assertTrue(message.content or message.tool_calls)
            if choice == "none":
                self.assertFalse(message.tool_calls)

    def test_what_a_tool_said(self):
        call = self.ask(tool_choice="required").choices[0].message
        messages = [*ASKED["messages"], call.model_dump(exclude_none=True),
                    {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "Sunny, 20 degrees"}]  # fmt: skip
        answer = self.ask(messages=messages, tool_choice="none").choices[0].message
        self.assertTrue(answer.content)

    def test_tools_that_make_no_sense(self):
        for more in ({"tool_choice": {"type": "function", "function": {"name": "nothing"}}}, {"tool_choice": "sometimes"},
                     {"tools": [3], "tool_choice": "required"}, {"tools": [{"type": "function"}], "tool_choice": "required"}):  # fmt: skip
            with self.assertRaises(openai.BadRequestError, msg=str(more)):
                self.ask(**more)

    # ---- Responses ----

    def test_a_response(self):
        response = self.client.responses.create(**RESPONSE, instructions="Be brief.")
        self.assertTrue(response.output_text)
        self.assertIn(response.status, ("completed", "incomplete"))
        self.assertEqual(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens)
        listed = RESPONSE | {"input": [{"role": "developer", "content": "Be brief."},
                                       {"role": "user", "content": [{"type": "input_text", "text": RESPONSE["input"]}]}]}  # fmt: skip
        self.assertEqual(self.client.responses.create(**listed).output_text, response.output_text)

    def test_a_response_that_is_cut_off(self):
        response = self.client.responses.create(**(RESPONSE | {"max_output_tokens": 3}))
        self.assertEqual((response.status, response.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        *_, last = self.client.responses.create(**(RESPONSE | {"max_output_tokens": 3}), stream=True)
        self.assertEqual(last.response.status, "incomplete")

    def test_a_response_in_parts(self):
        text = self.client.responses.create(**(RESPONSE | {"max_output_tokens": 200})).output_text
        with self.client.responses.stream(**(RESPONSE | {"max_output_tokens": 200})) as stream:
            events = list(stream)
            final = stream.get_final_response()
        self.assertEqual(final.output_text, text)
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"), text)
        self.assertEqual(events[0].type, "response.created")
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))

    def test_a_call_in_a_response(self):
        tool = {"type": "function", "strict": True, **WEATHER["function"]}
        request = RESPONSE | {"input": "What is the weather in Paris?", "tools": [tool], "tool_choice": "required",
                              "max_output_tokens": 96}  # fmt: skip
        (call,) = [item for item in self.client.responses.create(**request).output if item.type == "function_call"]
        self.assertEqual(call.name, "get_weather")
        self.assertEqual(set(json.loads(call.arguments)), {"city", "unit"})
        with self.client.responses.stream(**request) as stream:
            (streamed,) = [item for item in stream.get_final_response().output if item.type == "function_call"]
        self.assertEqual((streamed.name, streamed.arguments), (call.name, call.arguments))
        named = self.client.responses.create(**(request | {"tool_choice": {"type": "function", "name": "get_weather"}}))
        self.assertEqual(named.output[-1].name, "get_weather")

    def test_a_schema_in_a_response(self):
        parsed = self.client.responses.parse(**(RESPONSE | {"max_output_tokens": 64}), text_format=River)
        self.assertIsInstance(parsed.output_parsed, River)

    def test_responses_are_not_kept(self):
        with self.assertRaises(openai.APIStatusError) as raised:
            self.client.responses.create(**RESPONSE, previous_response_id="resp_1")
        self.assertEqual(raised.exception.status_code, 501)
        self.assertIn("previous_response_id", raised.exception.body["message"])

    def test_tokens_are_counted(self):
        n = self.client.responses.input_tokens.count(model="small", input=RESPONSE["input"]).input_tokens
        self.assertEqual(n, self.client.responses.create(**RESPONSE).usage.input_tokens)


if __name__ == "__main__":
    unittest.main()
