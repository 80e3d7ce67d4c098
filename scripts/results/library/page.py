"""A page of docs/results: what is measured for it, where that is kept, how the page is written.

    scripts/results/PAGE.py --prompts FILE      measures what is not measured yet, writes the page
    scripts/results/PAGE.py --list ...          what there is to measure
    scripts/results/PAGE.py --render            writes the page from what was measured
    scripts/results/PAGE.py --quick ...         little of everything, in build/results-quick/

Each measurement is a file of docs/results/PAGE/. One that is there already and was made of the same
prompts with the same settings is not made again, so that a long run can be stopped and go on; a program
that changed is for the user to know of (--again). What measurements make and use, such as stores and
layers, is kept in build/results/PAGE/. Standard library only.
"""

import argparse
import datetime
import fnmatch
import json
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .machine import machine_name
from .setup import ROOT, Setup

RESULTS = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Measurement:
    name: str  # of its file
    depends_on: dict  # whatever changes its result, as JSON has it
    measure: Callable[[], dict]


@dataclass
class Written:
    """What comes of what was measured."""

    lines: list[str]  # of the page
    plots: dict[str, str] = field(default_factory=dict)  # SVG by name, in the page's folder
    parts: dict[Path, list[str]] = field(default_factory=dict)  # of other pages, between the marks of this one


class Page:
    name = ""  # of its file, its folder and its command
    sections: list[str] = []  # the headings that it has when all is measured, a table below each
    quick: dict = {}  # what --quick says of the options
    needs_prompts = True

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Its own, beside those of all pages."""

    def measurements(self, setup: Setup) -> list[Measurement]:
        raise NotImplementedError

    def write(self, files: dict[str, dict]) -> Written:
        """`files`: by name. Whatever was not measured is left out."""
        raise NotImplementedError

    def main(self, arguments: list[str] | None = None) -> None:
        options = self.parse(arguments)
        if not options.render:
            setup = Setup(options, work=options.work)
            todo = [m for m in self.measurements(setup) if fnmatch.fnmatch(m.name, options.only)]
            if options.list:
                for m in todo:
                    print(f"{m.name:40} {'measured' if is_done(options.output, m) else 'to do'}")
                return
            measure_all(todo, options)
        for path in self.render(options.output, quick=options.quick):
            print(path)

    def parse(self, arguments: list[str] | None) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=type(self).__doc__.split("\n")[0])
        parser.add_argument("--prompts", type=Path, help="JSONL file as 'bench spec' reads it, with categories")
        parser.add_argument("--n-prompts", type=int, default=60, help="alike of every category")
        parser.add_argument("--tokens", type=int, default=96, help="of an answer, at most")
        parser.add_argument("--threads", type=int, default=2)
        parser.add_argument("--jobs", type=int, default=1, help="commands side by side: faster, less exact")
        parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "forerun"))
        parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="another file for a model; *=FILE: for each")
        parser.add_argument("--only", default="*", metavar="PATTERN", help="measurements to make: 'smollm2-q8*'")
        parser.add_argument("--again", action="store_true", help="also those that are there already")
        parser.add_argument("--list", action="store_true", help="show what there is to measure")
        parser.add_argument("--render", action="store_true", help="write the page, measure nothing")
        parser.add_argument("--quick", action="store_true", help="little of everything, for a try")
        parser.add_argument("--output", type=Path, help="folder for what is measured")
        self.add_options(parser)
        options = parser.parse_args(arguments)
        if options.quick:
            given = {word.split("=")[0].lstrip("-").replace("-", "_") for word in arguments or sys.argv[1:]}
            quick = {"n_prompts": 2, "tokens": 16, **self.quick}
            vars(options).update({key: value for key, value in quick.items() if key not in given})
        if self.needs_prompts and options.prompts is None and not options.render:
            parser.error("--prompts: which file?")
        kind = "results-quick" if options.quick else "results"
        options.work = ROOT / "build" / kind / self.name if options.output is None else options.output / "work"
        default = options.work / "raw" if options.quick else RESULTS / self.name
        options.output = options.output or default
        return options

    def render(self, raw: Path, quick: bool = False) -> list[Path]:
        """Writes the page beside the folder of what was measured; the paths of all that was written."""
        files = read_raw(raw)
        if not files:
            sys.exit(f"nothing is measured in {raw}: run this with --prompts FILE first")
        written = self.write(files)
        text = "\n".join(written.lines).rstrip() + "\n"
        pages = {raw.parent / f"{self.name}.md": text}
        pages |= {raw / f"{name}.svg": plot for name, plot in written.plots.items()}
        if raw == RESULTS / self.name and not quick:
            pages |= {
                path: replace_marked(path.read_text(), self.name, lines) for path, lines in written.parts.items()
            }
        for path, content in pages.items():
            path.write_text(content)
        return list(pages)


# ---- Measuring ----


def measure_all(todo: Iterable[Measurement], options: argparse.Namespace) -> None:
    missing = [m for m in todo if options.again or not is_done(options.output, m)]

    def make(m: Measurement) -> None:
        measured = circumstances(options.jobs)
        write(path_of(options.output, m), {"identity": m.depends_on, "measured": measured, **m.measure()})

    with ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        for _ in pool.map(make, missing):
            pass


def circumstances(jobs: int) -> dict:
    where = {"on": machine_name(), "date": datetime.date.today().isoformat()}
    return where if jobs == 1 else {**where, "side_by_side": jobs}


def path_of(folder: Path, m: Measurement) -> Path:
    return folder / f"{m.name}.json"


def is_done(folder: Path, m: Measurement) -> bool:
    path = path_of(folder, m)
    return path.exists() and json.loads(path.read_text())["identity"] == json.loads(json.dumps(m.depends_on))


def write(path: Path, result: dict) -> None:
    """With no more digits than mean something; whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps(rounded(result), separators=(",", ":")) + "\n")
    partial.replace(path)


def rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


# ---- Writing ----


def read_raw(folder: Path) -> dict[str, dict]:
    """What was measured, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def marks(page: str) -> tuple[str, str]:
    return f"<!-- {page}: begin, by scripts/results/{page}.py -->", f"<!-- {page}: end -->"


def replace_marked(text: str, page: str, lines: list[str]) -> str:
    """The text with other lines between the page's two marks."""
    begin, end = marks(page)
    before, mark, rest = text.partition(begin + "\n")
    _, end_mark, after = rest.partition(end + "\n")
    if not mark or not end_mark:
        raise ValueError(f"there is no place for the tables: a line '{begin}' and below it a line '{end}'")
    return before + mark + "\n".join(lines) + "\n" + end_mark + after


def how_measured(page: str, files: Iterable[dict]) -> list[str]:
    """Where the numbers of a page come from."""
    return [
        f"Written by `scripts/results/{page}.py` from the files in [{page}/]({page}), which it measures.",
        f"Hardware: {hardware(files)}.",
        "",
    ]


def hardware(files: Iterable[dict]) -> str:
    files = list(files)
    machines = listed(f"{file['identity']['threads']} threads of {file['measured']['on']}" for file in files)
    dates = sorted(file["measured"]["date"] for file in files)
    jobs = max(file["measured"].get("side_by_side", 1) for file in files)
    beside = f", up to {jobs} commands side by side, each on cores of its own" if jobs > 1 else ""
    return f"{machines}, {dates[0]}" + (f" to {dates[-1]}" if dates[0] != dates[-1] else "") + beside


def span(files: Iterable[dict], key: str) -> str:
    """"24 to 60"."""
    numbers = [file["identity"][key] for file in files]
    return str(min(numbers)) + (f" to {max(numbers)}" if max(numbers) > min(numbers) else "")


def listed(words: Iterable[str]) -> str:
    """Each once, in the order they come."""
    return ", ".join(dict.fromkeys(words))
