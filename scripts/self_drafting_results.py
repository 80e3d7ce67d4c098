#!/usr/bin/env python3
"""Measures what a model's own drafts bring, and writes tables and plots of it.

    scripts/self_drafting_results.py --prompts prompts.jsonl --output results/

Every other prompt of each category is for searches, the rest for speeds. Files that an earlier run
left in the output folder are used as they are, so that a run can go on where it was stopped. With
--jobs several commands run side by side, each on cores of its own: faster, and less exact.
Standard library only.
"""

import argparse
import json
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from forerun_results.commands import Commands, add_options
from forerun_results.layer_tables import write_page

SEARCHES = {
    "knapspec": ["--method", "knapspec"],
    "knapspec, half of the weight": ["--method", "knapspec", "--cap", "0.5"],
    "bayesian": ["--method", "bayesian"],
    "neighbour": ["--method", "neighbour"],
    "bayesian, measured": ["--method", "bayesian", "--objective", "measured", "--texts", "2", "--candidates", "60"],
    "swift as published": ["--method", "swift"],
    "selfsd as published": ["--method", "selfsd", "--objective", "expected"],
}
CONTEXTS = [512, 1024, 2048, 4096, 8192]
# The methods of one line are measured in turn, prompt by prompt, beside plain decoding.
MIXED_TREE = ["knapspec", "auto:layers=none", "auto"]
SWIFT = ["swift", "swift:search=published", "knapspec:cap=0.5"]
OTHERS = ["selfsd", "clasp", "del", "uniform"]
SMALL = [f"auto:layers={name}" for name in ["none", "knapspec", "swift", "clasp", "del", "uniform"]]
SELECTORS = ["uniform", "selfsd", "swift", "swift:search=published", "knapspec", "clasp", "del", "knnssd", "auto"]
CHARACTERS_PER_TOKEN = 3.6


def main() -> None:
    options = parse_options()
    Results(options).measure()
    print(options.output / "self-drafting.md")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prompts", type=Path, required=True, help="JSONL file as 'bench spec' reads it")
    parser.add_argument("--model", default="smollm2-deep", help="one with blocks to spare")
    parser.add_argument("--small-model", default="smollm2", help="one without")
    parser.add_argument("--other-model", default="gemma3-270m", help="whose text is compared too")
    parser.add_argument("--texts", type=int, default=6, help="prompts that searches use")
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=60, help="prompts that speeds are measured on")
    add_options(parser)
    return parser.parse_args()


class Results:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.output: Path = options.output
        self.run = Commands(options).run
        self.build, self.test = split_prompts(options.prompts, self.output)

    def measure(self) -> None:
        options = self.options
        calibration = self.run("calibration.json", "calibrate", "--json", model=options.model)
        with ThreadPoolExecutor(max_workers=64) as pool:
            # One that others wait for comes first.
            searches = {name: pool.submit(self.search, name, flags) for name, flags in SEARCHES.items()}
            layers, domains = searches["knapspec"], pool.submit(self.domains, options.model)
            speeds = {
                "mixed tree": pool.submit(self.speed, "mixed tree", MIXED_TREE),
                "swift": pool.submit(self.speed, "swift", SWIFT),
                "others": pool.submit(self.speed, "others", OTHERS, layers),
                "mixed stream": pool.submit(self.speed, "mixed stream", ["knnssd", "swift"], domains),
            }
            small = pool.submit(self.bench, "small model", SMALL, model=options.small_model, tokens=128)
            same = {
                f"{options.other_model}, greedy": pool.submit(self.same_text, options.other_model, 0),
                f"{options.model}, temperature 0.8": pool.submit(self.same_text, options.model, 0.8, layers, domains),
            }
            contexts = {n: pool.submit(self.context, n) for n in CONTEXTS}
            done = {
                part: {name: future.result() for name, future in futures.items()}
                for part, futures in [("searches", searches), ("speeds", speeds), ("same", same), ("contexts", contexts)]
            }
            write_page(self.output, calibration=calibration, small=small.result(), **done)

    def search(self, name: str, flags: list[object], prompts: Path | None = None, model: str | None = None) -> dict:
        layers = self.output / f"layers {name}.json"
        found = self.run(
            f"search {name}.json", "layers", "search", "--prompts", prompts or self.build, "-o", layers, "--json",
            "--texts", self.options.texts, "--candidates", self.options.candidates, *flags,
            model=model or self.options.model,
        )  # fmt: skip
        return {**found, "best_so_far": json.loads(layers.read_text())["found"]["best_so_far"]}

    def context(self, n_tokens: int) -> dict:
        """On a text of about so many tokens: prompts of the searches' half, one after the other."""
        prompts = self.output / f"context {n_tokens}.jsonl"
        texts = [json.loads(line)["turns"][0] for line in self.build.read_text().splitlines()]
        text = "\n\n".join(sorted(texts, key=len, reverse=True))[: int(n_tokens * CHARACTERS_PER_TOKEN)]
        prompts.write_text(json.dumps({"id": str(n_tokens), "category": "long", "turns": [text]}) + "\n")
        return self.search(f"context {n_tokens}", ["--context", n_tokens, "--texts", 1], prompts)

    def domains(self, model: str) -> dict:
        name = f"domains {model}.json"
        return self.run(
            name, "domains", "build", "--prompts", self.build, "-o", self.output / name, "--texts", 4,
            model=model, writes=True,
        )  # fmt: skip

    def bench(self, name: str, methods: list[str], *flags: object, model: str, tokens: int, limit: int = 0) -> dict:
        file = f"bench {name}.json"
        report = self.run(
            file, "bench", "spec", "--prompts", self.test, "--methods", ",".join(methods), "-n", tokens,
            "--limit", limit or self.options.limit, "--json", self.output / file, *flags, model=model, writes=True,
        )  # fmt: skip
        return report["methods"]

    def speed(self, name: str, methods: list[str], *needed: Future) -> dict:
        for future in needed:
            future.result()
        flags = [*self.files("knapspec", self.options.model), *(["--mix", 0.3] if "stream" in name else [])]
        return self.bench(name, methods, *flags, model=self.options.model, tokens=self.options.tokens)

    def same_text(self, model: str, temperature: float, *needed: Future) -> dict:
        for future in needed:
            future.result()
        layers = "knapspec" if needed else model
        if not needed:
            self.search(model, ["--candidates", 40], model=model)
            self.domains(model)
        sampling = ["--temp", temperature, "--seed", 1]
        return self.bench(f"same text {model}", SELECTORS, *sampling, *self.files(layers, model), model=model, tokens=32)

    def files(self, layers: str, model: str) -> list[object]:
        return [
            "--selfsd-layers", self.output / f"layers {layers}.json",
            "--knnssd-domains", self.output / f"domains {model}.json",
        ]  # fmt: skip


def split_prompts(prompts: Path, output: Path) -> tuple[Path, Path]:
    halves: tuple[list[str], list[str]] = ([], [])
    n_seen: dict[str, int] = defaultdict(int)
    for line in prompts.read_text().splitlines():
        category = json.loads(line).get("category", "")
        halves[n_seen[category] % 2].append(line + "\n")
        n_seen[category] += 1
    paths = output / "build.jsonl", output / "test.jsonl"
    for path, lines in zip(paths, halves):
        path.write_text("".join(lines))
    return paths


if __name__ == "__main__":
    main()
