#!/usr/bin/env python3
"""Measures what a model's own drafts bring, and writes tables and plots of it.

    scripts/self_drafting_results.py --prompts prompts.jsonl --output results/

Every other prompt of each category is for searches, the rest for speeds. Files that an earlier run
left in the output folder are used as they are, so that a run can go on where it was stopped.
Standard library only.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

SEARCHES = {
    "knapspec": ["--method", "knapspec"],
    "knapspec, half of the weight": ["--method", "knapspec", "--cap", "0.5"],
    "bayesian": ["--method", "bayesian"],
    "neighbour": ["--method", "neighbour"],
    "swift as published": ["--method", "swift"],
    "selfsd as published": ["--method", "selfsd", "--objective", "expected"],
}
CONTEXTS = [512, 1024, 2048, 4096, 8192]
METHODS = [
    "knapspec",
    "knapspec:cap=0.5",
    "swift",
    "swift:search=published",
    "clasp",
    "del",
    "selfsd",
    "auto:layers=none",
    "auto",
]


def main() -> None:
    options = parse_options()
    options.output.mkdir(parents=True, exist_ok=True)
    build, test = split_prompts(options.prompts, options.output)
    searches = {name: search(options, build, name, flags) for name, flags in SEARCHES.items()}
    contexts = {n: search(options, build, f"context {n}", ["--context", str(n)]) for n in CONTEXTS}
    domains = options.output / "domains.json"
    if not domains.exists():
        run(options, "domains", "build", "--prompts", build, "-o", domains, *texts(options))
    speeds = bench(options, "speeds", test, METHODS)
    mixed = bench(options, "mixed", test, ["knnssd", "swift"], "--mix", "0.3")
    write_page(options.output, searches, contexts, {**speeds, **only(mixed, "knnssd")})
    print(options.output / "self-drafting.md")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prompts", type=Path, required=True, help="JSONL file as 'bench spec' reads it")
    parser.add_argument("--output", type=Path, required=True, help="folder for all results")
    parser.add_argument("--program", default="build/bin/forerun")
    parser.add_argument("--model", default="smollm2-deep")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=6, help="prompts that searches use")
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=60, help="prompts that speeds are measured on")
    parser.add_argument("--tokens", type=int, default=96, help="of an answer")
    return parser.parse_args()


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


def run(options: argparse.Namespace, *arguments: object) -> None:
    command = [options.program, *map(str, arguments), "-m", options.model, "-t", str(options.threads)]
    print(" ".join(command), file=sys.stderr)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def texts(options: argparse.Namespace) -> list[str]:
    return ["--texts", str(options.texts), "--candidates", str(options.candidates)]


def search(options: argparse.Namespace, prompts: Path, name: str, flags: list[str]) -> dict:
    path = options.output / f"layers {name}.json"
    if not path.exists():
        run(options, "layers", "search", "--prompts", prompts, "-o", path, *texts(options), *flags)
    return json.loads(path.read_text())


def bench(options: argparse.Namespace, name: str, prompts: Path, methods: list[str], *flags: str) -> dict:
    path = options.output / f"{name}.json"
    if not path.exists():
        run(
            options, "bench", "spec", "--prompts", prompts, "--methods", ",".join(methods), "--json", path,
            "--limit", options.limit, "-n", options.tokens,
            "--selfsd-layers", options.output / "layers knapspec.json",
            "--knnssd-domains", options.output / "domains.json", *flags,
        )  # fmt: skip
    return json.loads(path.read_text())["methods"]


def only(methods: dict, name: str) -> dict:
    return {name: methods[name]}


def n_skipped(layers: dict, half: int) -> int:
    return sum(block % 2 == half for block in layers["skipped"])


def write_page(output: Path, searches: dict, contexts: dict, speeds: dict) -> None:
    lines = ["| method | prompts | the same text | speedup | tokens per pass |", "|---|---|---|---|---|"]
    for name, result in speeds.items():
        interval = f"{result['speedup']:.2f} ({result['speedup_low']:.2f} to {result['speedup_high']:.2f})"
        lines.append(
            f"| `{name}` | {result['prompts']} | {result['identical']} | {interval} | {result['tokens_per_step']:.2f} |"
        )
    lines += ["", "| search | attention left out | MLP left out | expected speed | candidates |", "|---|---|---|---|---|"]
    for name, layers in [*searches.items(), *((f"context {n}", found) for n, found in contexts.items())]:
        found = layers["found"]
        lines.append(
            f"| {name} | {n_skipped(layers, 0)} | {n_skipped(layers, 1)} | {found['speedup']:.2f} | {found['candidates']} |"
        )
    lines += ["", "![the best set after each candidate](searches.svg)", "", "![by context](contexts.svg)", ""]
    (output / "self-drafting.md").write_text("\n".join(lines))
    trajectories = {name: list(enumerate(layers["found"]["best_so_far"], 1)) for name, layers in searches.items()}
    (output / "searches.svg").write_text(plot("candidates", "expected speed", trajectories))
    kinds = {"attention left out": 0, "MLP left out": 1}
    choices = {name: [(n, n_skipped(found, half)) for n, found in contexts.items()] for name, half in kinds.items()}
    (output / "contexts.svg").write_text(plot("tokens of context", "blocks left out", choices))


def plot(x_title: str, y_title: str, series: dict[str, list[tuple[float, float]]]) -> str:
    """Lines over a common grid, as SVG that suits light and dark pages."""
    width, height, left, top = 640, 360, 60, 20
    points = [point for line in series.values() for point in line]
    (x_low, x_high), (y_low, y_high) = [(min(v), max(v)) for v in zip(*points)]

    def x(value: float) -> float:
        return left + (value - x_low) / ((x_high - x_low) or 1) * (width - left - 20)

    def y(value: float) -> float:
        return height - 40 - (value - y_low) / ((y_high - y_low) or 1) * (height - 40 - top)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 20 * len(series)}" font-size="12">']
    for i in range(5):
        x_value, y_value = (low + i * (high - low) / 4 for low, high in ((x_low, x_high), (y_low, y_high)))
        parts.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(y_value):.1f}" y2="{y(y_value):.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{left - 6}" y="{y(y_value) + 4:.1f}" text-anchor="end" fill="#888">{y_value:.4g}</text>')
        parts.append(f'<text x="{x(x_value):.1f}" y="{height - 24}" text-anchor="middle" fill="#888">{x_value:.4g}</text>')
    parts.append(f'<text x="{width - 20}" y="{height - 8}" text-anchor="end" fill="#888">{x_title}</text>')
    parts.append(f'<text x="4" y="14" fill="#888">{y_title}</text>')
    for i, (name, line) in enumerate(series.items()):
        color = f"hsl({i * 360 // len(series)} 70% 45%)"
        path = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{left}" y="{height + 14 + 20 * i}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
