#!/usr/bin/env python3
"""Measures forerun's engine against libllama, over models and numbers of tokens, and writes a table of it.

    scripts/models.py make random-qwen2-1.5b-{q4_0,q4_k,q6_k,q8_0,f16}
    scripts/engine_results.py --output results/

A row of the table is a model (MODEL@CONTEXT: with so many tokens of context, 256 otherwise): what
passes over 1 (decoding) to 32 tokens and reading a prompt take, and how often as long libllama
takes. Files that an earlier run left in the output folder are used as they are. Standard library
only.
"""

import argparse
import platform
from pathlib import Path

from forerun_results.commands import Commands, add_options
from forerun_results.engine_tables import table

BIG = [f"random-qwen2-1.5b-{type}" for type in ("q4_0", "q4_k", "q6_k", "q8_0", "f16")]
MODELS = ["smollm2", "smollm2@1024", "smollm2@4096", "smollm2-q8", "gemma3-270m", *BIG]
DEFAULT_CONTEXT = 256


def main() -> None:
    options = parse_options()
    measured = measure(options)
    page = options.output / "engine.md"
    page.write_text(f"{cpu_name()}, {options.threads} threads\n\n{table(measured)}")
    print(page.read_text(), end="")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", metavar="MODEL[@CONTEXT]", help="may be given again")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--prompt", type=int, default=512, help="length of the prompt that is read")
    add_options(parser)
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, dict]:
    run = Commands(options).run
    results = {}
    for name in options.model or MODELS:
        model, _, context = name.partition("@")
        results[name] = run(
            f"engine-{Path(name).name}.json",
            *("bench", "engine", "--json", "--starts", 0, "--rounds", options.rounds),
            *("--prompt", options.prompt, "--context", context or DEFAULT_CONTEXT),
            model=model,
        )
    return results


def cpu_name() -> str:
    """As the system calls it; on ARM that is often no name at all."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
