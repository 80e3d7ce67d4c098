#!/usr/bin/env python3
from library.engine_tables import readme_table, tables
from library.machine import machine_name
from library.page import ROOT, Measurement, Page, Written, hardware
from library.setup import Setup

BIG = [f"random-qwen2-1.5b-{type}" for type in ("q4_0", "q4_k", "q6_k", "q8_0", "f16")]
FAMILIES = [f"random-{shape}-q4_k" for shape in ("phi4-1.5b", "gemma2-1.5b", "qwen3-1.5b", "qwen3-30b-a3b-quarter")]
# With so many tokens of context behind an @; 256 otherwise.
MODELS = ["smollm2", "smollm2@1024", "smollm2@4096", "smollm2-q8", "gemma3-270m", *BIG, *FAMILIES]
DEFAULT_CONTEXT = 256


class Engine(Page):
    """Measures passes, prompts and loading against libllama: docs/results/engine.md, and README's table.

    Files of other machines stay: the page has a table for each. Models to make first:
    scripts/models.py make random-qwen2-1.5b-{q4_0,q4_k,q6_k,q8_0,f16}
    random-{phi4-1.5b,gemma2-1.5b,qwen3-1.5b,qwen3-30b-a3b-quarter}-q4_k (--only leaves some out).
    """

    name = "engine"
    needs_prompts = False
    quick = {"rounds": 1, "prompt": 16, "starts": 1}
    sections = ["## "]  # one for each machine

    def add_options(self, parser) -> None:
        parser.add_argument("--rounds", type=int, default=11)
        parser.add_argument("--prompt", type=int, default=512, help="length of the prompt that is read")
        parser.add_argument("--starts", type=int, default=3, help="loads that are timed; 0: none")
        parser.add_argument("--device", default="cpu", help="of both engines")

    def measurements(self, setup: Setup) -> list[Measurement]:
        options = setup.options
        place = "-".join([machine_name().lower().replace(" ", "-"), str(options.threads), options.device])
        return [
            Measurement(
                f"{name}.{''.join(c for c in place if c.isalnum() or c == '-')}",
                {"model": name, "threads": options.threads, "device": options.device,
                 "rounds": options.rounds, "prompt": options.prompt, "starts": options.starts},
                lambda name=name: bench(setup, name),
            )
            for name in MODELS
        ]  # fmt: skip

    def write(self, files: dict[str, dict]) -> Written:
        head = [
            "# The engine beside libllama, measured",
            "",
            "Written by `scripts/results/engine.py` from the files in [engine/](engine), which it measures with",
            "`forerun bench engine`: both engines on the same ggml, the same file and threads, taking turns. Milliseconds",
            "of a pass over so many tokens (medians), and in brackets how many times as long libllama takes. `@1024`: with",
            "so many tokens of context, 256 otherwise. *8 of 1*: what a pass over 8 tokens takes over one of 1. [What binds",
            "the kernels](../kernels.md).",
            "",
            f"Hardware: {hardware(files.values())}.",
            "",
        ]
        measured = sorted(files.values(), key=lambda file: MODELS.index(file["identity"]["model"]))
        return Written([*head, *tables(measured)], parts={ROOT / "README.md": readme_table(measured)})


def bench(setup: Setup, name: str) -> dict:
    options = setup.options
    model, _, context = name.partition("@")
    found = setup.program.json(
        "bench", "engine", "--device", options.device, "--starts", options.starts, "--rounds", options.rounds,
        "--prompt", options.prompt, "--context", context or DEFAULT_CONTEXT, model=setup.model(model),
    )  # fmt: skip
    return {"result": {key: value for key, value in found.items() if key != "model"}}


if __name__ == "__main__":
    Engine().main()
