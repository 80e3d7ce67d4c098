#!/usr/bin/env python3
import hashlib
from argparse import ArgumentParser
from pathlib import Path

from library.page import ROOT, Measurement, Page, Written, how_measured, span
from library.setup import Setup, digest, parted, read_prompts
from library.stores_measured import BASELINES, HARD_MODELS, LEARNING, VARIANTS, sssd, store_only
from library.stores_prompts import (
    PromptSet, alike, first_turns, halves, kept_file, random_prompts, text_files, write_texts,
)  # fmt: skip
from library.stores_scale_tables import plots
from library.stores_tables import SECTIONS, tables

MODEL, BATCH_MODEL = "smollm2", "smollm2-q8"
TEXTS = [ROOT / "docs", ROOT / "src"]
SIZES = [10**5, 10**6, 10**7, 10**8]
BATCHES = [1, 2, 4, 8, 16, 32, 64]
BYTES_PER_TOKEN = 3  # of text, about; what a store has is counted
CONTEXT = 2048  # of each request of a batch: 64 of the usual length would take much memory
HARD_TOKENS = 64


class Stores(Page):
    """Measures drafts from texts: docs/results/stores.md."""

    name = "stores"
    sections = SECTIONS
    quick = {"fill": 4, "sizes": [2000, 5000], "batches": [1, 2], "batch_tokens": 8, "store_tokens": 10**5,
             "store_steps": 100, "hard": 2}  # fmt: skip

    def add_options(self, parser: ArgumentParser) -> None:
        parser.set_defaults(n_prompts=30)
        parser.add_argument("--set", action="append", default=[], metavar="NAME=FILE", help="further prompts")
        parser.add_argument("--fill", type=int, default=48, help="prompts whose answers make a store")
        parser.add_argument("--texts", action="append", type=Path, metavar="DIR", help="foreign text (else: docs, src)")
        parser.add_argument("--sizes", type=numbers, default=SIZES, help="of stores of foreign text, in tokens")
        parser.add_argument("--batches", type=numbers, default=BATCHES, help="requests at once")
        parser.add_argument("--batch-tokens", type=int, default=32, help="of an answer in a batch")
        parser.add_argument("--store-tokens", type=int, default=10**8, help="of the store without a model")
        parser.add_argument("--store-steps", type=int, default=2000, help="that are timed there")
        parser.add_argument("--hard", type=int, default=40, help="prompts of random words")

    def measurements(self, setup: Setup) -> list[Measurement]:
        """Those that others wait for, or that wait for nobody, come first."""
        main, *others = sets = prompt_sets(setup)
        by_store, diluted = by_size(setup, main)
        first_batch, *batches = of_batches(setup)
        threads = setup.options.threads
        return [
            both(setup, main), *(m for s in sets for m in (warm(setup, s), input_only(setup, s))),
            first_batch, *(without_model(setup, n) for n in sorted({max(1, threads - 1), threads})),
            *(hard(setup, model) for model in HARD_MODELS), *by_store,
            *(both(setup, s) for s in others), *(m for s in sets for m in (baselines(setup, s), published(setup, s))),
            *batches, *diluted,
        ]  # fmt: skip

    def write(self, files: dict[str, dict]) -> Written:
        return Written([*page_head(files), *tables(list(files.values()))], plots=plots(list(files.values())))


def numbers(text: str) -> list[int]:
    return [int(float(part)) for part in text.split(",")]


def page_head(files: dict[str, dict]) -> list[str]:
    sets = [file for file in files.values() if "set" in file["identity"]]
    n_prompts, n_tokens = (span(sets, key) if sets else "some" for key in ("n_prompts", "tokens"))
    return [
        "# Drafts from texts, measured",
        "",
        *how_measured("stores", files.values()),
        "What SSSD (Marzollo et al., ACL 2026) drafts from: the request's own text (the *input*: prompt and answer",
        "so far) and a *store* of other texts ([datastore.md](../datastore.md)). Its variants: `pooled`, forerun's own",
        "and the default; `paper` and `code`, as the paper and as its authors' program have it (where they differ,",
        f"says `src/draft/text/sssd.h`). SmolLM2-135M in Q4_1, {n_prompts} prompts of each set, alike of every",
        f"category, answers of up to {n_tokens} tokens, greedy, where a section says nothing else. *Speedup* is the",
        "decode time of plain decoding, which takes turns with the methods prompt by prompt, over the method's, in",
        "brackets where 95 % of resampled sets of prompts lie; *the same text* counts prompts whose tokens are plain",
        "decoding's. Nothing of an earlier run is known to a run: neither costs nor what was learnt of drafts.",
        "",
    ]


# ---- What is measured with ----


def prompt_sets(setup: Setup) -> list[PromptSet]:
    """The main set first. Prompts whose answers are in the store are never measured."""
    options = setup.options
    named = [(options.prompts.stem, options.prompts)]
    named += [(name, Path(path)) for name, _, path in (pair.partition("=") for pair in options.set)]
    return [halves(name, read_prompts(path), digest(path), options.n_prompts, options.fill) for name, path in named]


def answers_store(setup: Setup, model: str, prompts: list[dict]) -> Path:
    """Made by plain decoding: the model's answers to these prompts."""
    tokens = setup.options.tokens
    path = kept_file(setup, prompts)
    known = hashlib.sha256(f"{setup.model(model)} {path.name} {tokens}".encode()).hexdigest()[:12]

    def make(store: Path) -> None:
        with setup.empty_folder() as folder:
            setup.bench(model, ["none"], "--live", folder, prompts=path, n_prompts=len(prompts), tokens=tokens)
            (folder / "none").rename(store)

    return setup.artefact(f"answers-{known}", make)


def shown(folder: Path) -> str:
    """One of ours without where the sources lie."""
    return str(folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder)


def foreign_store(setup: Setup, size: int) -> Path:
    folders = setup.options.texts or TEXTS
    model = setup.model(MODEL)
    known = hashlib.sha256(f"{model} {list(map(str, folders))} {size}".encode()).hexdigest()[:12]

    def make(store: Path) -> None:
        with setup.empty_folder() as folder:
            texts = folder / "texts.jsonl"
            write_texts(texts, text_files(folders), size * BYTES_PER_TOKEN)
            setup.program.run("datastore", "build", folder / "store", texts, "--jsonl", "text", model=model)
            (folder / "store").rename(store)

    return setup.artefact(f"foreign-{known}", make)


def described(setup: Setup, store: Path) -> dict:
    info = setup.program.json("datastore", "info", store)
    return {key: info[key] for key in ("tokens", "documents", "size_bytes")}


def bench_set(setup: Setup, prompts: list[dict], methods: list[str], *flags: object) -> dict:
    return setup.bench(MODEL, methods, *flags, prompts=kept_file(setup, prompts), n_prompts=len(prompts))


def of_set(setup: Setup, kind: str, prompts: PromptSet, measure) -> Measurement:
    identity = setup.identity(kind=kind, set=prompts.name, set_prompts=prompts.digest, fill=len(prompts.fill))
    return Measurement(f"{kind}-{prompts.name}", {**identity, "n_prompts": len(prompts.measured)}, measure)


# ---- Where drafts come from ----


def input_only(setup: Setup, prompts: PromptSet) -> Measurement:
    methods = [sssd(variant) for variant in VARIANTS]
    return of_set(setup, "input", prompts, lambda: bench_set(setup, prompts.measured, methods))


def both(setup: Setup, prompts: PromptSet) -> Measurement:
    methods = [name(variant) for variant in VARIANTS for name in (store_only, sssd)]
    return of_set(setup, "store", prompts, lambda: with_answers(setup, prompts, [*methods, "auto"]))


def baselines(setup: Setup, prompts: PromptSet) -> Measurement:
    return of_set(setup, "baselines", prompts, lambda: with_answers(setup, prompts, ["sssd", *BASELINES]))


def published(setup: Setup, prompts: PromptSet) -> Measurement:
    methods = [sssd(variant) for variant in VARIANTS]
    return of_set(setup, "roofline", prompts, lambda: with_answers(setup, prompts, methods, "--tree", "roofline"))


def warm(setup: Setup, prompts: PromptSet) -> Measurement:
    """Methods that remember answers give those of the store first."""
    return of_set(
        setup, "warm", prompts, lambda: bench_set(setup, [*prompts.fill, *prompts.measured], list(LEARNING))
    )


def with_answers(setup: Setup, prompts: PromptSet, methods: list[str], *flags: object) -> dict:
    store = answers_store(setup, MODEL, prompts.fill)
    found = bench_set(setup, prompts.measured, methods, "--datastore", store, *flags)
    return {**found, "stores": [described(setup, store)]}


# ---- Sizes ----


def by_size(setup: Setup, prompts: PromptSet) -> tuple[list[Measurement], list[Measurement]]:
    """Stores of foreign text, the largest first, and the same beside one of answers."""
    folders = setup.options.texts or TEXTS
    n_bytes = sum(path.stat().st_size for path in text_files(folders))
    wanted = sorted(setup.options.sizes)
    # One that the texts do not fill is as large as they are.
    sizes = [size for before, size in zip([0, *wanted], wanted) if before * BYTES_PER_TOKEN < n_bytes]

    def measure(size: int, own: bool) -> dict:
        stores = [foreign_store(setup, size), *([answers_store(setup, MODEL, prompts.fill)] if own else [])]
        flags = [flag for store in stores for flag in ("--datastore", store)]
        found = bench_set(setup, prompts.measured, ["sssd"], *flags)
        return {**found, "stores": [described(setup, store) for store in stores]}

    def measurement(size: int, own: bool) -> Measurement:
        made = of_set(setup, "diluted" if own else "foreign", prompts, lambda: measure(size, own))
        identity = {**made.depends_on, "size": size, "texts": list(map(shown, folders))}
        return Measurement(f"{made.depends_on['kind']}-{size}", identity, made.measure)

    largest_first = sorted(sizes, reverse=True)
    return [measurement(size, False) for size in largest_first], [measurement(size, True) for size in largest_first]


# ---- Batches, stores without a model, random words ----


def of_batches(setup: Setup) -> list[Measurement]:
    """All answer the same prompts, as many as the largest batch has; the store has answers to the others."""
    options = setup.options
    prompts = [first_turns(prompt) for prompt in read_prompts(options.prompts)]
    batches = [batch for batch in options.batches if batch < len(prompts)] or [1]
    measured, others = parted(prompts, max(batches))
    fill = alike(others, options.fill)

    def measure(batch: int) -> dict:
        store = answers_store(setup, BATCH_MODEL, fill)
        flags = ["--datastore", store, "--batch", batch, "--ctx-size", CONTEXT, "--ignore-eos"]
        return setup.bench(BATCH_MODEL, ["sssd", "auto"], *flags, prompts=kept_file(setup, measured),
                           n_prompts=len(measured), tokens=options.batch_tokens)  # fmt: skip

    def measurement(batch: int) -> Measurement:
        identity = setup.identity(kind="batch", batch=batch, batch_tokens=options.batch_tokens, fill=len(fill))
        identity["n_prompts"] = len(measured)
        return Measurement(f"batch-{batch}", identity, lambda: measure(batch))

    return [measurement(batch) for batch in batches]


def without_model(setup: Setup, n_computing: int) -> Measurement:
    """With so many threads; whatever cores are left fold text into segments."""
    options = setup.options

    def measure() -> dict:
        with setup.empty_folder() as folder:
            flags = ["--tokens", options.store_tokens, "--steps", options.store_steps, "-t", n_computing]
            return {"result": setup.program.json("bench", "retrieval", *flags, "--folder", folder / "store")}

    identity = {"kind": "retrieval", "threads": options.threads, "computing": n_computing}
    identity |= {"tokens": options.store_tokens, "steps": options.store_steps}
    return Measurement(f"retrieval-{n_computing}", identity, measure)


def hard(setup: Setup, model: str) -> Measurement:
    prompts = random_prompts(setup.options.hard)
    tokens = min(setup.options.tokens, HARD_TOKENS)

    def measure() -> dict:
        return setup.bench(model, ["auto"], prompts=kept_file(setup, prompts), n_prompts=len(prompts), tokens=tokens)

    identity = {"kind": "random", "model": model, "threads": setup.options.threads, "n_prompts": len(prompts)}
    return Measurement(f"random-{model}", {**identity, "tokens": tokens}, measure)


if __name__ == "__main__":
    Stores().main()
