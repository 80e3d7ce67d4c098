#!/usr/bin/env python3
"""Compares rules that end drafts, as DISCO's paper does, and writes tables and plots of it.

    scripts/lookahead_results.py --set code=mbpp.jsonl --set instructions=tasks.jsonl \\
        --set summaries=articles.jsonl --documents /usr/share/doc --output results/

Of each set some prompts are for speeds, some validate a classifier, and it is trained on the others.
With --documents, texts of that folder are to be summarised: they are added to the set "summaries",
whose own prompts are those that speeds are measured on. Files that an earlier run left in the output
folder are used as they are, so that a run can go on where it was stopped. With --jobs several
commands run side by side, each on cores of its own: faster, and less exact. Standard library only.
"""

import argparse
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from forerun_results.commands import Commands, add_options
from forerun_results.lookahead_tables import write_page
from forerun_results.measured import draft_step_ms

LENGTHS = range(1, 21)
RULES = ["heuristic", "confidence", "adaptive", "roc", "perplexity", "cost", "oracle"]
DOCUMENTS = ["README*", "*.txt", "*.txt.gz", "*.md", "*.md.gz", "*.rst", "*.rst.gz"]
SHORTEST_DOCUMENT, LONGEST_DOCUMENT = 1200, 2000  # characters
PER_PACKAGE = 3


def main() -> None:
    options = parse_options()
    Results(options).measure()
    print(options.output / "lookahead.md")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", action="append", required=True, metavar="NAME=FILE", help="prompts; may be given again")
    parser.add_argument("--documents", type=Path, help="a folder of texts to be summarised")
    parser.add_argument("--model", default="smollm2-q8")
    parser.add_argument("--draft-model", default="models/smollm2-draft.gguf")
    parser.add_argument("--train", type=int, default=400, help="prompts of a set to train on at most")
    parser.add_argument("--validate", type=int, default=80)
    parser.add_argument("--test", type=int, default=80)
    parser.add_argument("--parts", type=int, default=1, help="that the speeds of a set are measured in")
    add_options(parser)
    return parser.parse_args()


class Results:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.output: Path = options.output
        self.run = Commands(options).run
        self.sets = dict(pair.split("=", 1) for pair in options.set)
        self.draft = ["--draft-model", options.draft_model]

    def measure(self) -> None:
        for name, file in self.sets.items():
            self.split(name, Path(file))
        calibration = self.run("calibration.json", "calibrate", "--json", model=self.options.model)
        with ThreadPoolExecutor(max_workers=64) as pool:
            trained = dict(zip(self.sets, pool.map(self.train, self.sets)))
            tests = {name: {of: pool.submit(self.test, name, of) for of in self.sets} for name in self.sets}
            parts = {
                name: [pool.submit(self.speed, name, part) for part in range(self.options.parts)] for name in self.sets
            }
            done = {name: [part.result() for part in futures] for name, futures in parts.items()}
            write_page(
                self.output,
                calibration=calibration,
                trained=trained,
                tests={name: {of: test.result() for of, test in row.items()} for name, row in tests.items()},
                speeds={name: merged(results) for name, results in done.items()},
                # Of the longest drafts, which reading prompts is the least part of.
                draft_ms=min(draft_step_ms(result[f"fixed {max(LENGTHS)}"]) for part in done.values() for result in part),
            )

    def split(self, name: str, file: Path) -> None:
        lines = file.read_text().splitlines()
        if name == "summaries" and self.options.documents is not None:
            lines += [json.dumps(prompt) for prompt in document_prompts(self.options.documents)]
        ends = [self.options.test, self.options.test + self.options.validate]
        chosen = {"test": lines[: ends[0]], "validation": lines[ends[0] : ends[1]], "training": lines[ends[1] :]}
        for use, part in chosen.items():
            self.prompts(name, use).write_text("".join(line + "\n" for line in part))
        for part in range(self.options.parts):
            lines = chosen["test"][part :: self.options.parts]
            self.prompts(name, f"test {part}").write_text("".join(line + "\n" for line in lines))

    def prompts(self, name: str, use: str) -> Path:
        return self.output / f"{name} {use}.jsonl"

    def classifier(self, name: str) -> Path:
        return self.output / f"disco-{name}.gguf"

    def train(self, name: str) -> dict:
        return self.run(
            f"train {name}.json", "disco", "train", "--prompts", self.prompts(name, "training"), "--validation",
            self.prompts(name, "validation"), "--texts", self.options.train, "--tokens", self.options.tokens,
            "-o", self.classifier(name), "--json", *self.draft, model=self.options.model,
        )  # fmt: skip

    def test(self, name: str, of: str) -> dict:
        """How well the classifier of a set does on another."""
        return self.run(
            f"eval {name} on {of}.json", "disco", "eval", self.classifier(name), "--prompts", self.prompts(of, "test"),
            "--tokens", self.options.tokens, "--json", *self.draft, model=self.options.model,
        )  # fmt: skip

    def speed(self, name: str, part: int) -> dict:
        fixed = [f"draft:lookahead=fixed:lookahead-tokens={length}" for length in LENGTHS]
        disco = [f"draft:lookahead=disco:lookahead-classifier={self.classifier(of)}" for of in self.sets]
        rules = [f"draft:lookahead={rule}" for rule in RULES]
        file = f"bench {name} {part}.json"
        report = self.run(
            file, "bench", "spec", "--prompts", self.prompts(name, f"test {part}"), "--methods",
            ",".join(fixed + disco + rules), "-n", self.options.tokens, "--steps", "--json", self.output / file,
            "--draft-tokens", max(LENGTHS), *self.draft, model=self.options.model, writes=True,
        )  # fmt: skip
        return {short_name(method): result for method, result in report["methods"].items()}


def short_name(method: str) -> str:
    """"fixed 5", "disco (code)", "cost"."""
    options = dict(part.split("=", 1) for part in method.split(":")[1:])
    rule = options.get("lookahead", method)
    if rule == "fixed":
        return f"fixed {options['lookahead-tokens']}"
    if rule == "disco":
        return f"disco ({Path(options['lookahead-classifier']).stem.removeprefix('disco-')})"
    return rule


def merged(parts: list[dict]) -> dict[str, list[dict]]:
    """The runs of all parts, by method."""
    return {method: [run for part in parts for run in part[method]["runs"]] for method in parts[0]}


def document_prompts(folder: Path) -> list[dict]:
    """Summaries of documentation, a few of each package, every text once."""
    prompts, seen = [], set()
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        n_package = 0
        for path in sorted({path for pattern in DOCUMENTS for path in package.rglob(pattern) if path.is_file()}):
            text = read_document(path)
            if n_package == PER_PACKAGE or len(text) < SHORTEST_DOCUMENT or text in seen:
                continue
            seen.add(text)
            n_package += 1
            prompts.append({"id": f"{package.name}/{path.name}", "turns": [f"Summarize the following text:\n\n{text}"]})
    return prompts


def read_document(path: Path) -> str:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8", "replace")[:LONGEST_DOCUMENT].strip()


if __name__ == "__main__":
    main()
