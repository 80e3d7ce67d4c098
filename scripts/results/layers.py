#!/usr/bin/env python3
import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

from library import layers_choices as choices, layers_tables as tables
from library.layers_settings import (
    BENCHES, DEEP, EVEN_SETS, FIND, KNAPSACKS, LONG, SAME, SEARCHES, TRAINED, Bench, Search, context_methods,
)  # fmt: skip
from library.markdown import prose
from library.page import Measurement, Page, Written, how_measured, span
from library.setup import Setup, digest, parted, read_prompts, write_prompts

CHARACTERS_PER_TOKEN = 4.5
COSTS = "calibration.json"
LONGEST = ("swift-ablation", "skip-searched")
OF_SEARCHES = ("n_layers", "method", "objective", "speedup", "texts", "tokens", "candidates", "seconds", "skipped",
               "skipped_attention", "skipped_mlp", "planted", "planted_speedup", "best_so_far")  # fmt: skip


class Layers(Page):
    """Measures the model as its own drafter, some of its blocks left out: docs/results/layers.md."""

    name = "layers"
    sections = [
        tables.SPEED, tables.AS_PUBLISHED, tables.PARTS, tables.SKIP, tables.THRESHOLD, tables.INTERVAL, tables.CAP,
        choices.OBJECTIVE, choices.FOUND, choices.CONTEXTS, choices.NOTHING, choices.SAME_TEXT,
    ]  # fmt: skip
    quick = {"texts": 2, "candidates": 4, "contexts": [32, 64]}

    def add_options(self, parser) -> None:
        parser.set_defaults(n_prompts=12, tokens=64)
        parser.add_argument("--texts", type=int, default=4, help="prompts that searches use")
        parser.add_argument("--candidates", type=int, default=60, help="of searches, at most")
        parser.add_argument(
            "--contexts", type=lambda text: [int(n) for n in text.split(",")],
            default=[512, 1024, 2048, 4096, 8192, 16384], help="tokens of long texts",
        )  # fmt: skip

    def measurements(self, setup: Setup) -> list[Measurement]:
        """What takes longest comes first."""
        lengths = sorted(setup.options.contexts, reverse=True)
        contexts = [of_context(setup, n) for n in lengths]
        searches = [of_long_search(setup, n) for n in lengths]
        searches += [
            Measurement(
                choices.search_file(name),
                search_identity(setup, SEARCHES[name]),
                lambda name=name: {"found": slim_search(searched(setup, name))},
            )
            for name in {**FIND, **KNAPSACKS, **EVEN_SETS}
        ]
        benches = [
            Measurement(name, bench_identity(setup, bench), lambda bench=bench: run_bench(setup, bench))
            for name, bench in {**BENCHES, **SAME}.items()
        ]
        calibration = Measurement(
            "calibration", without_sizes(setup, model=DEEP),
            lambda: {"points": json.loads((costs(setup, DEEP) / COSTS).read_text())["points"]},
        )  # fmt: skip
        first = [bench for bench in benches if bench.name in LONGEST]
        return [calibration, *contexts, *first, *searches, *(bench for bench in benches if bench not in first)]

    def write(self, files: dict[str, dict]) -> Written:
        benches = [files[name] for name in BENCHES if name in files]
        parts = [
            tables.speed_section(files), tables.published_section(files), tables.parts_section(files),
            tables.skip_section(files), *(tables.sweep_section(files, option) for option in tables.SWEEPS),
            choices.objective_section(files), choices.found_section(files), choices.context_section(files),
            choices.small_section(files), choices.same_section(files),
        ]  # fmt: skip
        lines = [line for part in parts for line in part.lines]
        plots = {name: drawn for part in parts for name, drawn in part.plots.items()}
        return Written([*page_head(files, benches), *lines], plots)


# ---- Searches ----


def without_sizes(setup: Setup, **settings: object) -> dict:
    """Depends neither on the number of prompts nor on that of tokens that benches use."""
    identity = setup.identity(**settings)
    return {key: identity[key] for key in identity if key not in ("n_prompts", "tokens") or key in settings}


def search_flags(setup: Setup, search: Search) -> list[object]:
    n_candidates = max(1, round(search.part * setup.options.candidates))
    limit = ["--candidates", n_candidates] if search.part else []
    return [*search.flags, *limit, "--texts", search.texts or setup.options.texts, "--tokens", search.tokens]


def search_identity(setup: Setup, search: Search) -> dict:
    return without_sizes(setup, model=search.model, flags=search_flags(setup, search))


def costs(setup: Setup, model: str) -> Path:
    """The folder in which searches find what passes cost: the same for all, so that sets can be compared."""

    def make(folder: Path) -> None:
        with setup.empty_folder() as partial:
            report = setup.program.json("calibrate", model=setup.model(model), cache=partial)
            (partial / COSTS).write_text(json.dumps(report))
            shutil.copytree(partial, folder)

    return setup.artefact(f"costs-{model}", make)


def run_search(setup: Setup, name: str, model: str, prompts: Path, flags: list[object]) -> Path:
    """The file of layers that comes of it, with what the command says in a field of its own."""

    def make(path: Path) -> None:
        partial = path.with_suffix(".partial")
        command = ["layers", "search", "--prompts", prompts, "-o", partial, *flags]
        report = setup.program.json(*command, model=setup.model(model), cache=costs(setup, model))
        partial.write_text(json.dumps({**json.loads(partial.read_text()), "report": report}))
        partial.replace(path)

    return setup.artefact(f"{name}.json", make)


def searched(setup: Setup, name: str) -> Path:
    search = SEARCHES[name]
    key = sha256(json.dumps(search_identity(setup, search)).encode()).hexdigest()[:8]
    file = f"{choices.search_file(name)}-{key}"
    return run_search(setup, file, search.model, halves(setup)[0], search_flags(setup, search))


def slim_search(path: Path) -> dict:
    file = json.loads(path.read_text())
    report = {**file["report"], "best_so_far": file["found"]["best_so_far"]}
    return {key: report[key] for key in OF_SEARCHES if key in report}


# ---- Runs ----


def halves(setup: Setup) -> tuple[Path, Path]:
    """One half of each category is for searches, the other for speeds."""
    key = digest(setup.options.prompts)[:8]

    def make(folder: Path) -> None:
        prompts = read_prompts(setup.options.prompts)
        searched, others = parted(prompts, (len(prompts) + 1) // 2)
        folder.mkdir()
        write_prompts(folder / "search.jsonl", searched)
        write_prompts(folder / "speed.jsonl", others or searched)

    folder = setup.artefact(f"prompts-{key}", make)
    return folder / "search.jsonl", folder / "speed.jsonl"


def sizes(setup: Setup, bench: Bench) -> dict[str, int]:
    n_prompts, tokens = bench.prompts * setup.options.n_prompts, bench.tokens * setup.options.tokens
    return {"n_prompts": max(1, round(n_prompts)), "tokens": max(2, round(tokens))}


def bench_identity(setup: Setup, bench: Bench) -> dict:
    used = {name: search_flags(setup, SEARCHES[name]) for spec in bench.methods.values() for name in searches_of(spec)}
    return setup.identity(**sizes(setup, bench), **bench.described(), searches=used)


def searches_of(spec: str) -> list[str]:
    return re.findall(r"\{([^}]+)\}", spec)


def run_bench(setup: Setup, bench: Bench) -> dict:
    def with_files(spec: str) -> str:
        return re.sub(r"\{([^}]+)\}", lambda match: f'"{searched(setup, match[1])}"', spec)

    specs = {name: with_files(spec) for name, spec in bench.methods.items()}
    settings = {"prompts": halves(setup)[1], **sizes(setup, bench)}
    return by_name(setup.bench(bench.model, list(specs.values()), *bench.flags, **settings), specs)


def by_name(result: dict, specs: dict[str, str]) -> dict:
    """With the names that tables have for methods, which say nothing of where files lie."""
    methods = result["methods"]
    return {**result, "methods": {"none": methods["none"], **{name: methods[spec] for name, spec in specs.items()}}}


# ---- Long texts ----


def of_context(setup: Setup, n_tokens: int) -> Measurement:
    identity = without_sizes(setup, model=DEEP, context=n_tokens, methods=list(context_methods(n_tokens)))
    return Measurement(f"context-{n_tokens}", identity, lambda: bench_context(setup, n_tokens))


def of_long_search(setup: Setup, n_tokens: int) -> Measurement:
    identity = without_sizes(setup, model=DEEP, context=n_tokens)
    return Measurement(f"search-context-{n_tokens}", identity, lambda: {"found": search_context(setup, n_tokens)})


def long_prompt(setup: Setup, n_tokens: int) -> Path:
    """A file with one prompt of about so many tokens."""

    def make(path: Path) -> None:
        texts = [prompt["turns"][0] for prompt in read_prompts(setup.options.prompts)]
        text = "\n\n".join(sorted(texts, key=len, reverse=True))[: int(n_tokens * CHARACTERS_PER_TOKEN)]
        write_prompts(path, [{"id": str(n_tokens), "category": "long", "turns": [text]}])

    return setup.artefact(f"context-{n_tokens}-{digest(setup.options.prompts)[:8]}.jsonl", make)


def search_context(setup: Setup, n_tokens: int) -> dict:
    """What can be left out behind so many tokens."""
    prompts = long_prompt(setup, n_tokens)
    flags = ["--context", n_tokens, "--texts", 1, "--tokens", 64, "--candidates", 24]
    return slim_search(run_search(setup, f"search-{prompts.stem}", DEEP, prompts, flags))


def bench_context(setup: Setup, n_tokens: int) -> dict:
    """What drafting brings there."""
    room = ["-c", n_tokens + n_tokens // 4 + 512] if 2 * n_tokens > TRAINED else []
    tokens = max(2, min(128, n_tokens // 4))
    prompts = long_prompt(setup, n_tokens)
    return setup.bench(DEEP, list(context_methods(n_tokens)), *LONG, *room, prompts=prompts, n_prompts=1, tokens=tokens)


# ---- Writing ----


def page_head(files: dict[str, dict], benches: list[dict]) -> list[str]:
    n_prompts, n_tokens = (span(benches, key) if benches else "no" for key in ("n_prompts", "tokens"))
    return [
        "# The model as its own drafter, measured",
        "",
        *how_measured("layers", files.values()),
        *prose(
            f"""The model is `{DEEP}` unless a section says otherwise: SmolLM2-135M, each of whose layers is
            followed by up to six copies that do next to nothing, 190 redundant blocks of 250 at irregular places,
            Q8_0. It stands for large models, which have such blocks; small ones have none. Every other prompt of
            each category is for searches, the others are for speeds: {n_prompts} prompts, answers of up to
            {n_tokens} tokens, greedy. Methods of a table take turns prompt by prompt. *Speedup* is the decode time
            of plain decoding over the method's, choosing layers included, in brackets where 95 % of resampled sets
            of prompts lie. *Accepted*: of the drafted tokens that were compared with the model's. *Drafting*: the
            share of the decode time that drafts took, choosing layers included. *The same text* counts prompts
            whose tokens are plain decoding's."""
        ),
    ]


if __name__ == "__main__":
    Layers().main()
