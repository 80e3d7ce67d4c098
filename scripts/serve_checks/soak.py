#!/usr/bin/env python3
"""Keeps a real `forerun serve` as busy as it can be, for as long as you like, and looks at its memory.

More clients than it answers at once chat, stream, leave in the middle, share prefixes and ask for schemas and
tools. The cache is filled first, and a tenth of the time, at least a minute, is for the rest to warm up; after that
memory may not grow by more than --bound MB, and somebody who asks the same all along gets the same texts. Prints a line a minute.

    scripts/serve_checks/soak.py [--minutes 60] [--bound 50] [--seed 1]
"""

import argparse
import collections
import random
import sys
import threading
import time

from raw_http import connected, request, reset
from served import TOOLS_TEMPLATE, Broken, CheckedServer, Witness

N_CLIENTS = 12
N_CONTEXT = 1024
N_CELLS = 4096
WORDS = "river mountain winter engine garden letter teacher window music silver".split()
PREFIX = "You are a helpful assistant who answers in one short sentence. " * 4
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}, "size": {"type": "integer"}},
          "required": ["name", "size"], "additionalProperties": False}  # fmt: skip
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}


class Client(threading.Thread):
    def __init__(self, server: CheckedServer, seed: int, is_over: threading.Event, counts: collections.Counter) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.random = random.Random(seed)
        self.is_over = is_over
        self.counts = counts
        self.trouble: str | None = None
        self.turns: list[dict] = []

    def run(self) -> None:
        kinds = [self.chat, self.chat, self.stream, self.stream, self.leave, self.complete, self.follow_schema, self.call_tool]
        while not self.is_over.is_set():
            kind = self.random.choice(kinds)
            try:
                kind()
            except Exception as error:
                if not self.is_over.is_set():
                    self.trouble = f"{kind.__name__}: {type(error).__name__}: {error}"
                return
            self.counts[kind.__name__] += 1

    def question(self) -> dict:
        words = " and ".join(self.random.choices(WORDS, k=self.random.randrange(1, 30)))
        return {"role": "user", "content": f"Tell me about {words}."}

    def options(self) -> dict:
        return {"max_tokens": self.random.randrange(1, 48), "temperature": self.random.choice((0, 0.8, 1.2)),
                "seed": self.random.randrange(1000), "speculative": self.random.random() < 0.8}  # fmt: skip

    def chat(self) -> None:
        """A conversation that goes on, and is begun anew when it is long."""
        if len(self.turns) > 6:
            self.turns = []
        self.turns.append(self.question())
        messages = [{"role": "system", "content": PREFIX}, *self.turns]
        answer = self.server.post("/v1/chat/completions", {"messages": messages, **self.options()})
        self.turns.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "Yes."})

    def stream(self) -> None:
        events = list(self.server.stream("/v1/chat/completions", {"messages": [self.question()], "n": self.random.choice((1, 1, 2)),
                                                                 **self.options()}))  # fmt: skip
        if events[-1] != "[DONE]":
            raise Broken(f"a stream ends with {events[-1]}")

    def leave(self) -> None:
        body = {"prompt": self.question()["content"], "n_predict": 200, "ignore_eos": True, "stream": self.random.random() < 0.7}
        with connected(self.server.port) as connection:
            connection.sendall(request("/completion", body))
            if body["stream"]:
                connection.recv(self.random.randrange(1, 4000))
            else:
                time.sleep(self.random.random() / 2)
            reset(connection)

    def complete(self) -> None:
        body = {"prompt": [PREFIX + self.question()["content"]] * self.random.choice((1, 3)), "n_probs": self.random.choice((0, 5))}
        self.server.post("/completion", body | self.options())

    def follow_schema(self) -> None:
        self.server.post("/v1/chat/completions", {"messages": [self.question()], "json_schema": SCHEMA, **self.options()})

    def call_tool(self) -> None:
        choice = self.random.choice(("auto", "required"))
        self.server.post("/v1/chat/completions", {"messages": [self.question()], "tools": [TOOL], "tool_choice": choice, **self.options()})


def fill_cache(server: CheckedServer) -> None:
    """Its memory is used only once it fills."""
    for i in range(3 * N_CELLS // N_CONTEXT):
        prompt = " ".join(f"{i} {word}" for word in WORDS * 14)
        server.post("/completion", {"prompt": prompt, "n_predict": 1})


def soak(options: argparse.Namespace) -> None:
    is_over = threading.Event()
    counts: collections.Counter[str] = collections.Counter()
    flags = ("-c", N_CONTEXT, "--cells", N_CELLS, "--chat-template-file", TOOLS_TEMPLATE)
    with CheckedServer(*flags) as server, Witness(server, pause_s=2) as witness:
        fill_cache(server)
        clients = [Client(server, options.seed * 1000 + i, is_over, counts) for i in range(N_CLIENTS)]
        for client in clients:
            client.start()
        begin = time.monotonic()
        warm_up_s = max(60, options.minutes * 6)
        warm, most = None, 0.0
        n_minutes = 0
        try:
            while (passed := time.monotonic() - begin) < options.minutes * 60:
                time.sleep(1)
                server.check_alive()
                size = server.rss_mb()
                if passed >= warm_up_s:
                    warm = max(warm or 0, size) if passed < warm_up_s + 5 else warm or size
                    most = max(most, size)
                for trouble in [witness.trouble, *(client.trouble for client in clients)]:
                    if trouble:
                        raise Broken(trouble)
                if warm is not None and most - warm > options.bound:
                    raise Broken(f"memory grows from {warm:.0f} to {most:.0f} MB")
                if passed >= 60 * (n_minutes + 1):
                    n_minutes += 1
                    print(f"minute {n_minutes}: {size:.0f} MB, {counts.total()} requests, {witness.n_answers} answers the same", flush=True)
        finally:
            is_over.set()
        for client in clients:
            client.join(timeout=300)
        server.wait_until_idle()
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
        print(f"soak: {counts.total()} requests ({kinds}); memory {warm or 0:.0f} MB when warm, {most:.0f} MB at most")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--bound", type=float, default=50, help="MB that memory may grow by after the warm-up")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        soak(options)
    except Broken as broken:
        print(f"soak: {broken}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
