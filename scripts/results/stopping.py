#!/usr/bin/env python3
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from library.measured import decode_ms, draft_step_ms
from library.page import Measurement, Page, Written
from library.setup import DRAFT_MODEL, Setup, write_prompts
from library.stopping_model import fastest
from library.stopping_settings import (
    COMPARISONS, LONGEST, MODELS, N_TIMED, ORACLE, TRIED, Comparison, Methods, disco, fixed, sets_of, split, tuned,
    where_from, with_classifier, with_defaults, with_threshold,
)  # fmt: skip
from library.stopping_tables import SECTIONS, page

CALIBRATION, TIMES, TRAINED, CLASSIFIER = "calibration.json", "times.json", "trained.json", "disco.gguf"  # in folders
BY_STEP = ("drafted_by_step", "accepted_by_step")


class Stopping(Page):
    """Compares rules that end drafts, as DISCO's paper does: docs/results/stopping.md.

    Prompts are those of --set, and the category "summarization" of --prompts with the texts of --documents: the set
    "summaries". Of each set --n-prompts are for speeds, some validate, and classifiers are trained on others.
    """

    name = "stopping"
    sections = SECTIONS
    quick = {"tokens": 24, "train": 4, "validate": 2, "parts": 1, "timed": False}

    def add_options(self, parser) -> None:
        parser.set_defaults(n_prompts=24, tokens=64)
        parser.add_argument("--set", action="append", default=[], metavar="NAME=FILE", help="prompts; may come again")
        parser.add_argument("--documents", type=Path, help="a folder of texts, to be summarised")
        parser.add_argument("--train", type=int, default=100, help="prompts of a set to train on")
        parser.add_argument("--validate", type=int, default=30, help="prompts of a set to validate with")
        parser.add_argument("--parts", type=int, default=2, help="that the speeds of a set are measured in")
        parser.add_argument("--untimed", dest="timed", action="store_false", help="classifiers keep a threshold of 0.5")

    def measurements(self, setup: Setup) -> list[Measurement]:
        work = Work(setup)
        return [*work.calibrations(), *work.trainings(), *work.tunings(), *work.speeds(), *work.tests()]

    def write(self, files: dict[str, dict]) -> Written:
        return page(files)


class Work:
    """What is measured, and what is made on the way: files of prompts, classifiers, and thresholds."""

    def __init__(self, setup: Setup) -> None:
        options = setup.options
        self.setup = setup
        self.uses = {
            name: split(prompts, options.n_prompts, options.validate, options.train)
            for name, prompts in sets_of(options).items()
        }
        # What takes longest begins first.
        self.sets = sorted(self.uses, key=lambda name: -len(json.dumps(self.uses[name])))
        self.draft = ["--draft-model", setup.model(DRAFT_MODEL)]

    # ---- What there is to measure ----

    def trainings(self) -> Iterator[Measurement]:
        for c, name in self.cases():
            yield self.measurement("train", c, name, partial(self.training, c, name))

    def calibrations(self) -> Iterator[Measurement]:
        for model in MODELS:
            identity = self.setup.identity(what="calibration", model=model)
            yield Measurement(f"calibration-{model}", identity, partial(self.calibration, model))

    def tunings(self) -> Iterator[Measurement]:
        for c, name in self.cases():
            if c.tuned:
                yield self.measurement("tune", c, name, partial(self.tuning, c, name))

    def speeds(self) -> Iterator[Measurement]:
        parts = self.setup.options.parts
        for c, name in self.cases():
            for part in range(parts):
                measure = partial(self.speed, c, name, part)
                yield self.measurement("speed", c, name, measure, f"-{part}", part=part, parts=parts)

    def tests(self) -> Iterator[Measurement]:
        """Of each classifier on its own set, of some on the others; and at a temperature of greedy ones too."""
        for c, on in self.cases():
            of = [(c, name) for name in self.sets if c.others or name == on]
            of += [(COMPARISONS[c.greedy], on)] if c.greedy else []
            for by, name in of:
                measure, which = partial(self.test, c, by, name, on), {"classifier": by.name, "trained_on": name}
                yield self.measurement("test", c, on, measure, f"-by-{by.name}-{name}", **which)

    def cases(self) -> list[tuple[Comparison, str]]:
        return [(c, name) for c in COMPARISONS.values() for name in self.sets]

    def measurement(self, what: str, c: Comparison, name: str, measure: Callable[[], dict], rest: str = "",
                    **settings: object) -> Measurement:  # fmt: skip
        return Measurement(f"{what}-{c.name}-{name}{rest}", self.identity(c, name, what=what, **settings), measure)

    def identity(self, c: Comparison, name: str, **settings: object) -> dict:
        options = self.setup.options
        of_set = {
            "set": name,
            "of": where_from(options, name),
            "prompts": key_of(self.uses[name]),
            "uses": {use: len(prompts) for use, prompts in self.uses[name].items()},
        }
        of_rules = {"comparison": c.name, **asdict(c), "tried": TRIED, "longest": LONGEST, "timed": options.timed}
        return self.setup.identity(**of_set, **of_rules, **settings)

    # ---- Making and measuring ----

    def prompts(self, name: str, use: str, part: int = 0, parts: int = 1) -> Path:
        chosen = self.uses[name][use][part::parts]
        return self.setup.artefact(f"{name}-{use}-{key_of(chosen)}.jsonl", lambda path: write_prompts(path, chosen))

    def trained(self, c: Comparison, name: str) -> Path:
        """The folder of a classifier, and what the program says of it."""
        options = self.setup.options
        rule = [] if options.timed else ["--threshold", 0.5, "--max-tokens", 8]

        def train(folder: Path) -> None:
            report = self.setup.program.json(
                "disco", "train", "--prompts", self.prompts(name, "training"), "--validation",
                self.prompts(name, "validation"), "--tokens", options.tokens, "--temp", c.temperature, *rule,
                "-o", folder / CLASSIFIER, *self.draft, model=self.setup.model(c.model),
            )  # fmt: skip
            (folder / TRAINED).write_text(json.dumps(report))

        return self.folder(f"disco-{c.name}-{name}-{key_of(self.identity(c, name, what='train'))}", train)

    def training(self, c: Comparison, name: str) -> dict:
        found = json.loads((self.trained(c, name) / TRAINED).read_text())
        return {key: found[key] for key in ("examples", "f1", "threshold", "max_tokens", "seconds")}

    def classifier(self, c: Comparison, name: str) -> Path:
        return self.trained(c, name) / CLASSIFIER

    def costs(self, model: str) -> Path:
        """The folder in which commands find what passes cost, and what `calibrate` says of it."""

        def calibrate(folder: Path) -> None:
            report = self.setup.program.json("calibrate", model=self.setup.model(model), cache=folder)
            (folder / CALIBRATION).write_text(json.dumps(report))

        return self.folder(f"costs-{model}", calibrate)

    def calibration(self, model: str) -> dict:
        found = json.loads((self.costs(model) / CALIBRATION).read_text())
        return {"points": [{key: point[key] for key in ("rows", "ms")} for point in found["points"]]}

    def validated(self, c: Comparison, name: str) -> Path:
        """The folder of what validation prompts taught: times by threshold, and what `cost` knows of drafts."""

        def validate(folder: Path) -> None:
            shutil.copytree(self.costs(c.model), folder, dirs_exist_ok=True)
            methods = {f"{rule} {value}": with_threshold(rule, value) for rule in c.tuned for value in TRIED[rule]}
            methods |= with_defaults(("cost",))
            n_prompts = min(N_TIMED, len(self.uses[name]["validation"]))
            found = self.bench(c, methods, self.prompts(name, "validation"), n_prompts, cache=folder)
            times = {label: decode_ms(runs) for label, runs in found["methods"].items()}
            rules = {rule: {str(value): times[f"{rule} {value}"] for value in TRIED[rule]} for rule in c.tuned}
            tuning = {"n_timed": n_prompts, "none": times["none"], "rules": rules}
            (folder / TIMES).write_text(json.dumps(tuning))

        return self.folder(f"validated-{c.name}-{name}-{key_of(self.identity(c, name, what='tune'))}", validate)

    def tuning(self, c: Comparison, name: str) -> dict:
        """Decode times by rule and threshold, and plain decoding's."""
        return json.loads((self.validated(c, name) / TIMES).read_text())

    def folder(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Whole, or not there."""

        def make(path: Path) -> None:
            with self.setup.empty_folder() as partial:
                fill(partial)
                shutil.copytree(partial, path)

        return self.setup.artefact(name, make)

    def test(self, c: Comparison, by: Comparison, name: str, on: str) -> dict:
        """How well the classifier of a set does on another."""
        found = self.setup.program.json(
            "disco", "eval", self.classifier(by, name), "--prompts", self.prompts(on, "test"), "--tokens",
            self.setup.options.tokens, "--temp", c.temperature, *self.draft, model=self.setup.model(c.model),
        )  # fmt: skip
        return {key: found[key] for key in ("tokens", "taken", "half", "calibration_error", "bins")}

    def speed(self, c: Comparison, name: str, part: int) -> dict:
        classifiers = {disco(name): self.classifier(c, name)}
        classifiers |= {disco(of): self.classifier(c, of) for of in self.sets if c.others}
        if c.greedy:
            classifiers[disco(name, greedy=True)] = self.classifier(COMPARISONS[c.greedy], name)
        chosen = {rule: fastest(times) for rule, times in self.tuning(c, name)["rules"].items()}
        methods = {
            **fixed(c.lengths),
            **{label: with_classifier(file) for label, file in classifiers.items()},
            **with_defaults(c.rules),
            **{tuned(rule): with_threshold(rule, value) for rule, value in chosen.items()},
            **ORACLE,
        }
        prompts = self.prompts(name, "test", part, self.setup.options.parts)
        with self.setup.empty_folder() as known:
            shutil.copytree(self.validated(c, name), known, dirs_exist_ok=True)
            found = self.bench(c, methods, prompts, self.setup.options.n_prompts, cache=known)
        keep_steps = (disco(name), "cost", "oracle")
        runs = {label: [slim(run, label in keep_steps) for run in runs] for label, runs in found["methods"].items()}
        return {"chosen": chosen, "draft_ms": found["draft_ms"], "methods": runs}

    def bench(self, c: Comparison, methods: Methods, prompts: Path, n_prompts: int, cache: Path) -> dict:
        """The runs of each rule, and what a drafted token took with the longest drafts of a fixed length."""
        flags = ["--temp", c.temperature, "--steps", *self.draft]
        where = {"prompts": prompts, "n_prompts": n_prompts, "cache": cache}
        report = self.setup.bench(c.model, list(methods.values()), *flags, **where)
        found = {label: report["methods"][method] for label, method in {"none": "none", **methods}.items()}
        # Of these, reading prompts is the least part.
        longest = found.get(f"fixed {max(c.lengths)}", {"drafted": 0})
        draft_ms = draft_step_ms(longest) if longest["drafted"] else None
        return {"methods": {label: result["runs"] for label, result in found.items()}, "draft_ms": draft_ms}


def key_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def slim(run: dict, with_steps: bool) -> dict:
    kept = ("id", "tokens", "identical", "decode_ms", "steps", "drafted", "accepted", *(BY_STEP if with_steps else ()))
    return {key: run[key] for key in kept if key in run}


if __name__ == "__main__":
    Stopping().main()
