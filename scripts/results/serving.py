#!/usr/bin/env python3
from library.page import Measurement, Page, Written, how_measured, span
from library.serving_tables import SECTIONS, tables
from library.setup import Setup

MODELS = ("smollm2", "smollm2-q8")
# Sentences of instructions that all prompts begin with.
PREFIXES = (0, 40)
STREAMS = (1, 4, 16, 64)
METHODS = ("none", "auto")


class Serving(Page):
    """Measures `forerun serve` under load, with clients of its own: docs/results/serving.md."""

    name = "serving"
    sections = SECTIONS
    quick = {"streams": "1,2", "rounds": 1, "requests": 1}

    def add_options(self, parser) -> None:
        parser.add_argument("--streams", default=",".join(map(str, STREAMS)), help="clients at once")
        parser.add_argument("--requests", type=int, default=8, help="of each client in a round")
        parser.add_argument("--rounds", type=int, default=3, help="in each of which every server has its turn")
        parser.add_argument("--llama-server", metavar="PATH", help="llama.cpp's server, to compare with")

    def measurements(self, setup: Setup) -> list[Measurement]:
        options = setup.options
        load = {"streams": options.streams, "requests": options.requests, "rounds": options.rounds}
        return [
            Measurement(
                f"{model}-shared" if prefix else model,
                setup.identity(model=model, prefix=prefix, **load),
                lambda model=model, prefix=prefix: {"servers": bench(setup, model, prefix)},
            )
            for model in MODELS
            for prefix in PREFIXES
        ]

    def write(self, files: dict[str, dict]) -> Written:
        head = [
            "# Serving, measured",
            "",
            *how_measured("serving", files.values()),
            f"`forerun bench serve`: real clients over HTTP, {span(files.values(), 'n_prompts')} prompts, answers of up to",
            f"{span(files.values(), 'tokens')} tokens, greedy. *Streams* are clients that ask one request after the other; servers take turns,",
            "and a number is the median of rounds. *First text* is what a client waits for the first text of its answer, *between",
            "texts* what passes until the next one. *Other texts* are answers that are not plain decoding's.",
            "",
        ]
        return Written([*head, *tables(list(files.values()))])


def bench(setup: Setup, model: str, prefix: int) -> list[dict]:
    options = setup.options
    shared = ["--shared-prefix", prefix] if prefix else []
    peer = ["--llama-server", options.llama_server] if options.llama_server else []
    return setup.program.json(
        "bench", "serve", "--prompts", options.prompts, "--limit", options.n_prompts, "-n", options.tokens,
        "--methods", ",".join(METHODS), "--streams", options.streams, "--requests", options.requests,
        "--rounds", options.rounds, *shared, *peer, model=setup.model(model),
    )  # fmt: skip


if __name__ == "__main__":
    Serving().main()
