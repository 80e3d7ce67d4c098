"""What measurements are made with: prompts, models, the program, and what it makes on the way."""

import argparse
import hashlib
import json
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from .first_tokens import model_path
from .program import Program

ROOT = Path(__file__).resolve().parents[3]
DRAFT_MODEL = "smollm2-draft"
# What the pages read of a method, and of its run on a prompt.
OF_METHODS = ("prompts", "identical", "tokens", "tokens_per_step", "drafted", "accepted", "accept_rate",
              "draft_share", "pass_share", "by_source")  # fmt: skip
OF_RUNS = ("id", "category", "tokens", "identical", "prompt_ms", "decode_ms", "steps", "drafted", "accepted",
           "drafted_by_step", "accepted_by_step")  # fmt: skip


class Setup:
    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options = options
        self.program = Program(options.program, options.threads, options.jobs)
        self.work = work
        self.models = dict(pair.split("=", 1) for pair in options.model)
        self.locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def identity(self, **settings: object) -> dict:
        """What every result depends on, and what this one does besides."""
        options = self.options
        common = {"prompts": digest(options.prompts), "threads": options.threads}
        return {**common, "n_prompts": options.n_prompts, "tokens": options.tokens, **settings}

    def model(self, name: str) -> str:
        """The file of a model that is known by name, or another that was given for it."""
        if given := self.models.get(name) or self.models.get("*"):
            return given
        return str(ROOT / "models" / f"{name}.gguf") if name == DRAFT_MODEL else str(model_path(name))

    def artefact(self, name: str, make: Callable[[Path], object]) -> Path:
        """A file or folder that measurements use, made by the first that does."""
        path = self.work / name
        with self.locks[name]:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                make(path)
        return path

    @contextmanager
    def empty_folder(self) -> Iterator[Path]:
        """For one measurement; beside what is kept, since it may be large."""
        self.work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            yield Path(folder)

    def bench(self, model: str, methods: list[str], *flags: object, **settings: object) -> dict:
        """Its result of each method, by name, plain decoding among them. `settings`: as bench_report has them."""
        report = self.bench_report(model, methods, *flags, **settings)
        return {"forerun": report["forerun"], "methods": {name: slim(result) for name, result in report["methods"].items()}}

    def bench_report(self, model: str, methods: list[str], *flags: object, prompts: Path | None = None,
                     n_prompts: int | None = None, tokens: int | None = None, **settings: object) -> dict:  # fmt: skip
        """All that `bench spec` writes. `settings`: as Program.run() has them."""
        options = self.options
        return self.program.bench_spec(
            "--prompts", prompts or options.prompts, "--limit", n_prompts or options.n_prompts,
            "-n", tokens or options.tokens, "--methods", ",".join(methods), "--seed", 1, *flags,
            model=self.model(model), **settings,
        )  # fmt: skip


def slim(result: dict) -> dict:
    kept = {key: result[key] for key in OF_METHODS if key in result}
    return {**kept, "runs": [{key: run[key] for key in OF_RUNS if key in run} for run in result["runs"]]}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_prompts(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def parted(prompts: list[dict], n: int) -> tuple[list[dict], list[dict]]:
    """`n` of them, the same number of each category as far as they go, and the others; both in their order."""
    places = defaultdict(list)
    for i, prompt in enumerate(prompts):
        places[prompt.get("category") or ""].append(i)
    turns = [i for turn in zip_longest(*places.values()) for i in turn if i is not None]
    chosen = set(turns[:n])
    return [p for i, p in enumerate(prompts) if i in chosen], [p for i, p in enumerate(prompts) if i not in chosen]


def write_prompts(path: Path, prompts: list[dict]) -> None:
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
