"""Twenty conversations that chat templates are checked with: what people and programs send, and what templates
trip over."""

_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city, today or later.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its name, as in \"Zürich\""},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 0},
            },
            "required": ["city"],
        },
    },
}
_SUM = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds numbers <here & there>.",
        "parameters": {
            "type": "object",
            "properties": {"numbers": {"type": "array", "items": {"type": "number"}}, "exact": {"type": "boolean"}},
            "required": ["numbers"],
        },
    },
}
_TOOLS = [_WEATHER, _SUM]


def _system(content: str) -> dict:
    return {"role": "system", "content": content}


def _user(content: str) -> dict:
    return {"role": "user", "content": content}


def _assistant(content: str, **fields) -> dict:
    return {"role": "assistant", "content": content, **fields}


def _call(name: str, arguments: dict, call_id: str = "call00001") -> dict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(name: str, content: str, call_id: str = "call00001") -> dict:
    return {"role": "tool", "name": name, "content": content, "tool_call_id": call_id}


_ASK = _user("What is the weather in Rome?")
_CALL = _assistant("", tool_calls=[_call("get_weather", {"city": "Rome", "days": 2})])
_RESULT = _result("get_weather", '{"sky": "clear", "degrees": 24.5}')
_TWO_CALLS = _assistant(
    "I look both up.",
    tool_calls=[
        _call("get_weather", {"city": "Århus", "unit": "celsius"}, "call00001"),
        _call("add", {"numbers": [1, 2.5, -3], "exact": True}, "call00002"),
    ],
)
_TWO_RESULTS = [_result("get_weather", "rain", "call00001"), _result("add", "0.5", "call00002")]
_THOUGHT = _assistant("It is 4.", reasoning_content="Two and two.\nThat makes 4.")

# Of each: its name, and the arguments of apply_chat_template that it has.
CONVERSATIONS = {
    "user": {"messages": [_user("Hello!")]},
    "user, not to be answered": {"messages": [_user("Hello!")], "add_generation_prompt": False},
    "system": {"messages": [_system("You are brief."), _user("Hello!")]},
    "turns": {"messages": [_user("Hi"), _assistant("Hello."), _user("And you?"), _assistant("Fine."), _user("Good.")]},
    "system and turns": {"messages": [_system("Be kind."), _user("Hi"), _assistant("Hello."), _user("Bye")]},
    "ended by the assistant": {"messages": [_user("Hi"), _assistant("Hello.")], "add_generation_prompt": False},
    "spaces and lines": {"messages": [_user("  one\n\ntwo\t \n"), _assistant("\n three  \n"), _user(" ")]},
    "scripts": {"messages": [_system("Répondez où c'est utile."), _user("你好,мир! 👩‍👩‍👧 ıİ ß\u00a0\u2028€"), _assistant("😀"), _user("é")]},
    "like markup": {"messages": [_user("{{ messages }} {% raw %} <b>&amp;</b> \"quoted\" \\n 'it''s' </think> x")]},
    "empty": {"messages": [_user(""), _assistant(""), _user("Say something.")]},
    "two of the user": {"messages": [_user("One."), _user("Two.")]},
    "system later": {"messages": [_user("Hi"), _assistant("Hello."), _system("Now in verse."), _user("Go on.")]},
    "tools": {"messages": [_ASK], "tools": _TOOLS},
    "system and tools": {"messages": [_system("Use tools."), _ASK], "tools": [_WEATHER]},
    "call and result": {"messages": [_ASK, _CALL, _RESULT], "tools": _TOOLS},
    "call, result, answer": {
        "messages": [_ASK, _CALL, _RESULT, _assistant("Sunny."), _user("Thanks!")],
        "tools": [_WEATHER],
    },
    "two calls": {"messages": [_user("Both, please."), _TWO_CALLS, *_TWO_RESULTS], "tools": _TOOLS},
    "call without content": {
        "messages": [_ASK, {"role": "assistant", "content": None, "tool_calls": _CALL["tool_calls"]}, _RESULT],
        "tools": _TOOLS,
    },
    "thoughts": {"messages": [_user("2 + 2?"), _THOUGHT, _user("Sure?")]},
    "thoughts before a call": {
        "messages": [_ASK, {**_CALL, "reasoning_content": "I should look."}, _RESULT],
        "tools": _TOOLS,
    },
}
