"""Requests that make no sense. Whatever they are, none of them is answered with status 500, and none takes the
server along. Each returns what it saw in a few words."""

import collections
import json
import random

from raw_http import exchange, request, status_of
from served import Broken, CheckedServer

CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}], "max_tokens": 3}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"enum": ["x", 2, None]}}, "required": ["a"]}
VALID = [
    ("/completion", {"prompt": "One two", "n_predict": 3, "temperature": 0.5, "seed": 3, "stop": ["x"], "n_probs": 2}),
    ("/completion", {"prompt": ["One", [1, 2, 3]], "n_predict": 2, "logit_bias": [[5, 1.5], ["a", False]], "stream": True}),
    ("/completion", {"prompt": "One", "n_predict": 3, "grammar": 'root ::= ("a" | [b-d]+)* "e"?', "cache_prompt": False}),
    ("/completion", {"prompt": "One", "n_predict": 3, "json_schema": SCHEMA, "speculative": {"method": "pld", "max_draft": 4}}),
    ("/v1/completions", {"prompt": "One two", "max_tokens": 3, "n": 2, "logprobs": 2, "stream_options": {"include_usage": True}}),
    ("/v1/chat/completions", CHAT | {"tools": [TOOL], "tool_choice": "auto", "logprobs": True, "top_logprobs": 2}),
    ("/v1/chat/completions", CHAT | {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}, "stream": True}),
    ("/v1/chat/completions", CHAT | {"prediction": {"type": "content", "content": "Hello"}, "chat_template_kwargs": {"a": [1]}}),
    ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], "max_output_tokens": 3}),
    ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "max_tokens": 3, "system": "x"}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "Hi"}], "tools": [{"name": "f", "input_schema": SCHEMA}]}),
    ("/apply-template", {"messages": CHAT["messages"], "tools": [TOOL]}),
    ("/tokenize", {"content": "Hello \N{SNOWMAN}", "with_pieces": True, "add_special": True}),
    ("/detokenize", {"tokens": [1, 2, 3]}),
]  # fmt: skip
ODD = [None, True, False, 0, -1, 1, 2**31, -(2**31) - 1, 2**53, 2**63, 2**64, -(2**63), 1e308, -1e308, 5e-324, 0.1, "", "x",
       "\0", "\ud800", "a" * 5000, [], {}, [[]], [{}], {"": ""}, [None], ["x", 1], {"type": "text"}, [[1, 2, 3]] * 20]  # fmt: skip
NUMBERS = ["1e999", "-1e999", "1" * 1000, "-" + "9" * 400, "0." + "1" * 1000, "1e-999", "NaN", "Infinity", "0x10", "01", "1e", "-",
           "18446744073709551616", "9223372036854775808", "-9223372036854775809", "2147483648", "-2147483649", "1.5e9"]  # fmt: skip
NESTED = 100_000


class Asker:
    """Counts statuses; a 500 is the end."""

    def __init__(self, server: CheckedServer) -> None:
        self.server = server
        self.statuses: collections.Counter[int] = collections.Counter()

    def ask(self, data: bytes, says_end: bool = False) -> int:
        try:
            answer = exchange(self.server.port, data, says_end=says_end)
        except TimeoutError:
            raise Broken(f"no answer to {data[:2000]!r}") from None
        except ConnectionRefusedError:
            self.server.check_alive()
            raise
        status = status_of(answer)
        self.statuses[status] += 1
        if status == 500 or (status == 0 and self.server.process.poll() is not None):
            raise Broken(f"{answer[-300:]!r} to {data[:2000]!r}")
        return status

    def seen(self) -> str:
        return ", ".join(f"{n} times {status or 'no answer'}" for status, n in sorted(self.statuses.items()))


def bytes_that_are_no_text(server: CheckedServer) -> str:
    asker = Asker(server)
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x00", b"\xc0\xaf", b"\x80" * 50):
        for path in ("/completion", "/v1/chat/completions", "/tokenize", "/v1/messages", "/v1/responses"):
            for body in (b'{"prompt": "%s", "content": "%s", "n_predict": 2, "messages": [{"role": "user", "content": "%s"}]}',
                         b'{"%s": 1}%s%s', b"%s%s%s"):  # fmt: skip
                asker.ask(request(path, body % (bad, bad, bad)))
        asker.ask(b"GET /" + bad + b" HTTP/1.1\r\n\r\n")
        asker.ask(b"GET /%" + bad.hex()[:2].encode() + b"%00%ff?a=%ff HTTP/1.1\r\n\r\n")
        asker.ask(b"GET /health HTTP/1.1\r\nX-" + bad + b": " + bad + b"\r\n\r\n")
        asker.ask(b"GET /health HTTP/1.1\r\nOrigin: " + bad + b"\r\nAuthorization: Bearer " + bad + b"\r\n\r\n")
    return asker.seen()


def nested(server: CheckedServer) -> str:
    asker = Asker(server)
    deep = [b"[" * NESTED, b"[" * NESTED + b"]" * NESTED, b'{"a":' * NESTED + b"1" + b"}" * NESTED]
    for path, _ in VALID:
        for body in deep:
            if asker.ask(request(path, body)) != 400:
                raise Broken(f"JSON of {NESTED} levels is not refused by {path}")
    fields = ("prompt", "messages", "tools", "json_schema", "response_format", "logit_bias", "chat_template_kwargs", "input")
    for field in fields:
        for n in (150, 250, NESTED):
            inner = b"[" * n + b"]" * n
            for path in ("/completion", "/v1/chat/completions", "/v1/responses", "/v1/messages"):
                asker.ask(request(path, b'{"prompt": "x", "n_predict": 2, "%s": %s}' % (field.encode(), inner)))
    for n in (150, 1000, NESTED):
        for grammar in ("root ::= " + "(" * n + '"a"' + ")" * n, "root ::= " + "(" * n, "root ::= " + '"a"? ' * min(n, 20)):
            asker.ask(request("/completion", {"prompt": "x", "n_predict": 2, "grammar": grammar}))
        chain = "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1}" for i in range(n)) + f'\nr{n} ::= "a"'
        asker.ask(request("/completion", {"prompt": "x", "n_predict": 2, "grammar": chain}))
        pattern = "^" + "(" * n + "a" + ")" * n + "$"
        asker.ask(request("/completion", {"prompt": "x", "n_predict": 2, "json_schema": {"type": "string", "pattern": pattern}}))
    schema: dict = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    for path in ("/completion", "/v1/chat/completions"):
        asker.ask(request(path, {"prompt": "x", "n_predict": 2, "json_schema": schema} | CHAT))
    return asker.seen()


def huge_numbers(server: CheckedServer) -> str:
    asker = Asker(server)
    names = ("n_predict", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty",
             "frequency_penalty", "seed", "n", "n_probs", "priority", "max_tokens", "mirostat", "logprobs")  # fmt: skip
    for number in NUMBERS:
        for name in names:
            # What comes last counts.
            asker.ask(request("/completion", f'{{"prompt": "x", "n_predict": 2, "{name}": {number}}}'.encode()))
        for body in ('{"prompt": [%s], "n_predict": 2}', '{"prompt": "x", "n_predict": 2, "logit_bias": [[%s, 1]]}',
                     '{"prompt": "x", "n_predict": 2, "logit_bias": [[1, %s]]}',
                     '{"prompt": "x", "n_predict": 2, "json_schema": {"type": "integer", "minimum": %s}}',
                     '{"prompt": "x", "n_predict": 2, "json_schema": {"type": "string", "maxLength": %s}}',
                     '{"prompt": "x", "n_predict": 2, "json_schema": {"type": "array", "minItems": %s}}',
                     '{"prompt": "x", "n_predict": 2, "grammar": "root ::= \\"a\\"{%s}"}',
                     '{"prompt": "x", "n_predict": 2, "speculative": {"max_draft": %s}}'):  # fmt: skip
            asker.ask(request("/completion", (body % number).encode()))
        asker.ask(request("/detokenize", f'{{"tokens": [{number}]}}'.encode()))
    for length in ("-1", "1e3", "99999999999999999999", "0x10", "", "5, 5"):
        asker.ask(f"POST /completion HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode(), says_end=True)
    return asker.seen()


# ---- Mutations ----


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(result) + 1)
        end = min(len(result), at + rng.choice((1, 1, 2, 10)))
        kind = rng.randrange(5)
        if kind == 0:
            result[at:end] = b""
        elif kind == 1:
            result[at:at] = rng.randbytes(rng.choice((1, 2, 8)))
        elif kind == 2:
            result[at:at] = result[at:end] * rng.choice((1, 2, 50))
        elif kind == 3 and at < len(result):
            result[at] ^= 1 << rng.randrange(8)
        else:
            result[at:at] = rng.choice((b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u0000", b"\r\n", b"0", b"-", b"1e9", b"\0"))
    return bytes(result)


def mutate_value(value: object, rng: random.Random) -> object:
    """Somewhere in it, something else."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        changed = dict(value)
        if rng.random() < 0.15:
            del changed[key]
        else:
            changed[key] = mutate_value(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        changed = list(value)
        at = rng.randrange(len(changed))
        changed[at] = mutate_value(changed[at], rng)
        return changed * rng.choice((1, 1, 1, 3))
    if isinstance(value, str) and rng.random() < 0.4:
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice(("\0", "\ud800", '"', "\\", "<|im_end|>", "(", "]", "\n", "\N{SNOWMAN}" * 100)) + value[at:]
    return rng.choice(ODD)


def mutations(server: CheckedServer, n_requests: int, rng: random.Random) -> str:
    """With one connection for each, so that one's bytes are never another's."""
    asker = Asker(server)
    for _ in range(n_requests):
        path, body = rng.choice(VALID)
        for _ in range(rng.choice((1, 1, 2, 3))):
            body = mutate_value(body, rng)
        text = json.dumps(body).encode()
        kind = rng.random()
        if kind < 0.2:
            head, _, rest = request(path, text).partition(b"\r\n\r\n")
            asker.ask(mutate_bytes(head, rng) + b"\r\n\r\n" + rest, says_end=True)
        else:
            asker.ask(request(path, mutate_bytes(text, rng) if kind < 0.4 else text))
    return asker.seen()
