#!/usr/bin/env python3
from library.markdown import section, table
from library.measured import decode_ms, same_text, speed_interval
from library.page import Measurement, Page, Written, how_measured, span
from library.setup import DRAFT_MODEL, Setup

MODEL = "smollm2-wide"
BATCHES = (1, 8, 32)
TEMPERATURES = (0, 0.8)
SECTION = "## Speculation"


class Gpu(Page):
    """Measures what drafting brings on a GPU, alone and with many at once: docs/results/gpu.md.

    The model to make first: scripts/models.py make smollm2-wide --params 8B. Single passes and prompts beside
    libllama's are the engine's page (--device cuda).
    """

    name = "gpu"
    sections = [SECTION]
    quick = {"device": "cpu"}

    def add_options(self, parser) -> None:
        parser.add_argument("--device", default="cuda")
        parser.add_argument("--about", default="", help="what the GPU is called")

    def measurements(self, setup: Setup) -> list[Measurement]:
        return [
            Measurement(
                f"batch-{batch}-temp-{temperature}",
                setup.identity(model=MODEL, batch=batch, temperature=temperature, gpu=setup.options.about),
                lambda batch=batch, temperature=temperature: bench(setup, batch, temperature),
            )
            for batch in BATCHES
            for temperature in TEMPERATURES
        ]

    def write(self, files: dict[str, dict]) -> Written:
        measured = sorted(files.values(), key=lambda file: (file["identity"]["temperature"], file["identity"]["batch"]))
        gpus = ", ".join(dict.fromkeys(file["identity"]["gpu"] for file in measured if file["identity"]["gpu"]))
        head = [
            "# On a GPU, measured",
            "",
            *how_measured("gpu", measured),
            f"{gpus or 'One GPU'}; `smollm2-wide` in F16 with the size of an 8B model, whose text is SmolLM2-135M's; the shipped draft",
            f"model; {span(measured, 'n_prompts')} prompts, answers of up to {span(measured, 'tokens')} tokens. Methods take turns. *Tokens per second*",
            "are of all requests together while they are decoded; in brackets where 95 % of resampled sets of prompts lie. *ggml's*:",
            "plain greedy decoding with ggml's kernels (`FORERUN_KERNELS=ggml`), in a run of its own.",
            "",
        ]
        ggml = {file["identity"]["batch"]: tokens_per_second(file["ggml"]) for file in measured if "ggml" in file}
        rows = [row(file, ggml.get(file["identity"]["batch"])) for file in measured]
        return Written([*head, *section(SECTION, table(HEAD, rows))])


HEAD = ["requests at once", "temperature", "ggml's, tokens per second", "plain", "`auto`", "speedup", "over ggml's",
        "tokens per pass", "the same text"]  # fmt: skip


def bench(setup: Setup, batch: int, temperature: float) -> dict:
    flags = ["--device", setup.options.device, "--batch", batch, "--temp", temperature]
    kernels = "ggml" if setup.options.device != "cpu" else ""
    ours = setup.bench(MODEL, ["none", "auto"], *flags, "--draft-model", setup.model(DRAFT_MODEL))
    if temperature > 0:  # which makes no difference to kernels
        return ours
    # Passes as ggml's users have them, not filled up.
    ggml = setup.bench(MODEL, ["none"], *flags, "--no-exact", kernels=kernels)
    return {**ours, "ggml": ggml["methods"]["none"]}


def tokens_per_second(result: dict) -> float:
    return 1000 * result["tokens"] / decode_ms(result["runs"])


def row(file: dict, ggml: float | None) -> list[object]:
    methods, identity = file["methods"], file["identity"]
    plain, auto = (tokens_per_second(methods[name]) for name in ("none", "auto"))
    of_ggml = (f"{ggml:.0f}", f"{auto / ggml:.2f}") if ggml else ("", "")
    return [identity["batch"], identity["temperature"], of_ggml[0], f"{plain:.0f}", f"{auto:.0f}",
            speed_interval(methods, "auto"), of_ggml[1], f"{methods['auto']['tokens_per_step']:.2f}",
            same_text(methods["auto"])]  # fmt: skip


if __name__ == "__main__":
    Gpu().main()
