#!/usr/bin/env python3
import json
import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from library import domains_tables as tables
from library.domains_prompts import by_domain, divided
from library.markdown import prose
from library.page import Measurement, Page, Written, how_measured
from library.setup import Setup, write_prompts

MODEL = "smollm2-domains"
# As KNN-SSD's program has it: a token below this ends a draft, and nothing adapts.
THRESHOLD = "threshold=0.8:tokens=12"
FIXED = f"{THRESHOLD}:adapt=false"


class Domains(Page):
    """Measures layers that are chosen by what a prompt is about (KNN-SSD): docs/results/domains.md."""

    name = "domains"
    sections = [tables.ROUTING, tables.MATRIX, tables.STREAM, tables.FOUND, tables.OUTSIDE]
    quick = {"build_prompts": 2, "texts": 1, "search_tokens": 8, "ratios": [0.3]}

    def add_options(self, parser) -> None:
        parser.set_defaults(n_prompts=18, tokens=48)
        parser.add_argument("--build-prompts", type=int, default=6, help="of each domain, to make anchors of")
        parser.add_argument("--texts", type=int, default=3, help="of a domain, that its layers are searched on")
        parser.add_argument("--search-tokens", type=int, default=16, help="of an answer that layers are searched on")
        parser.add_argument(
            "--ratios", type=lambda text: [float(r) for r in text.split(",")], default=[0.0, 0.3, 0.7, 1.0],
            help="of streams: the chance that the next prompt is of another domain",
        )  # fmt: skip

    def measurements(self, setup: Setup) -> list[Measurement]:
        """What the others wait for comes first."""
        options = setup.options
        names = list(by_domain(options.prompts))

        def measurement(name: str, measure: Callable[[], dict], **settings: object) -> Measurement:
            return Measurement(name, setup.identity(**built_with(setup), **settings), measure)

        builds = [
            measurement(kind, lambda kind=kind: {"built": report(setup, kind)}, n_prompts=None, tokens=None)
            for kind in ("labelled", "unlabelled")
        ]
        streams = [
            measurement(f"stream-{ratio:g}", lambda ratio=ratio: stream(setup, ratio), ratio=ratio)
            for ratio in options.ratios
        ]
        of_domains = [
            measurement(f"{kind}-{file_name(name)}", partial(measure, setup, name), domain=name)
            for kind, measure in (("matrix", cross), ("outside", outside_of)) for name in names
        ]  # fmt: skip
        return [*builds, *streams, *of_domains]

    def write(self, files: dict[str, dict]) -> Written:
        parts = [tables.routing_section(files), tables.matrix_section(files), tables.stream_section(files),
                 tables.found_section(files), tables.outside_section(files)]  # fmt: skip
        return Written([*page_head(files), *(line for part in parts for line in part)], tables.plots(files))


# ---- What measurements use ----


def built_with(setup: Setup) -> dict:
    """What files of domains and of layers depend on, beside the prompts."""
    options = setup.options
    named = {key: getattr(options, key) for key in ("build_prompts", "texts", "search_tokens")}
    return {"model": MODEL, **named}


def file_name(domain: str) -> str:
    """What a file may be called by; domains that differ in other characters only are not expected."""
    return re.sub(r"[^\w-]+", "-", domain)


def artefact(setup: Setup, name: str, make: Callable[[Path], object]) -> Path:
    """Those of other options and models lie in other folders."""
    depends_on = [setup.identity(**built_with(setup)), setup.model(MODEL)]
    return setup.artefact(f"{sha256(json.dumps(depends_on).encode()).hexdigest()[:12]}/{name}", make)


def prompt_file(setup: Setup, which: str, domain: str | None = None) -> Path:
    """Prompts to `build` from or to `measure`, of one domain or of all."""
    options = setup.options

    def make(path: Path) -> None:
        parts = divided(by_domain(options.prompts), options.build_prompts, options.n_prompts)
        chosen = [part[which] for name, part in parts.items() if domain in (None, name)]
        write_prompts(path, [prompt for part in chosen for prompt in part])

    return artefact(setup, f"{which}.jsonl" if domain is None else f"{which}-{file_name(domain)}.jsonl", make)


def built(setup: Setup, kind: str) -> Path:
    """A folder with the file of domains, and with what was said of making it."""
    options = setup.options
    n_domains = len(by_domain(options.prompts))
    flags = ["--unlabelled", max(2, n_domains)] if kind == "unlabelled" else []

    def make(folder: Path) -> None:
        with setup.empty_folder() as made:
            said = setup.program.json(
                "domains", "build", "--prompts", prompt_file(setup, "build"), "--texts", options.texts, "--tokens",
                options.search_tokens, *flags, "-o", made / "domains.json", model=setup.model(MODEL),
            )  # fmt: skip
            (made / "said.json").write_text(json.dumps(said))
            folder.mkdir()
            for path in made.iterdir():
                path.rename(folder / path.name)

    return artefact(setup, kind, make)


def report(setup: Setup, kind: str) -> dict:
    """What was said of building, and of each domain which blocks it leaves out."""
    said = json.loads((built(setup, kind) / "said.json").read_text())
    file = json.loads((built(setup, kind) / "domains.json").read_text())
    skipped = {domain["name"]: domain["skipped"] for domain in file["domains"]}
    of_domains = [{**domain, "skipped": skipped[domain["name"]]} for domain in said["domains"]]
    return {**said, "n_blocks": 2 * file["n_layers"], "domains": of_domains}


def own_layers(setup: Setup, domain: str) -> Path:
    """The layers of one domain, as a file of their own."""

    def make(path: Path) -> None:
        file = json.loads((built(setup, "labelled") / "domains.json").read_text())
        found = next(d for d in file["domains"] if d["name"] == domain)
        layers = {"forerun_layers": 1, "model": file["model"], "n_layers": file["n_layers"]}
        path.write_text(json.dumps({**layers, "skipped": found["skipped"], "found": found["found"]}))

    return artefact(setup, f"layers-{file_name(domain)}.json", make)


def shared_layers(setup: Setup) -> Path:
    """One set for all domains together, searched on texts of each."""
    options = setup.options
    n_texts = max(2, options.texts // 2) * len(by_domain(options.prompts))
    return artefact(
        setup, "layers-of-all.json",
        lambda path: setup.program.run(
            "layers", "search", "--prompts", prompt_file(setup, "build"), "--texts", n_texts, "--tokens",
            options.search_tokens, "-o", path, model=setup.model(MODEL),
        ),
    )  # fmt: skip


def without_domain(setup: Setup, domain: str) -> Path:
    """The file of domains, as if there were one less."""

    def make(path: Path) -> None:
        file = json.loads((built(setup, "labelled") / "domains.json").read_text())
        file["domains"] = [d for d in file["domains"] if d["name"] != domain]
        path.write_text(json.dumps(file))

    return artefact(setup, f"without-{file_name(domain)}.json", make)


# ---- Measuring ----


def bench(setup: Setup, prompts: Path, methods: dict[str, str], *flags: object) -> dict:
    """Results by the names given here, which are those of the tables."""
    n_prompts = sum(1 for _ in prompts.open())
    result = setup.bench(MODEL, list(methods.values()), *flags, prompts=prompts, n_prompts=n_prompts)
    return {**result, "methods": dict(zip(["none", *methods], result["methods"].values()))}


def selfsd(path: Path) -> str:
    return f'selfsd:layers="{path}":{FIXED}'


def knnssd(path: Path, fallback: str = "none") -> str:
    return f'knnssd:domains="{path}":fallback={fallback}:{THRESHOLD}'


def stream(setup: Setup, ratio: float) -> dict:
    methods = {
        "shared": selfsd(shared_layers(setup)),
        "labelled": knnssd(built(setup, "labelled") / "domains.json", "nearest"),
        "unlabelled": knnssd(built(setup, "unlabelled") / "domains.json", "nearest"),
        **{name: name for name in ("swift", "knapspec", "auto")},
    }
    return {"ratio": ratio, **bench(setup, prompt_file(setup, "measure"), methods, "--mix", ratio)}


def cross(setup: Setup, domain: str) -> dict:
    methods = {name: selfsd(own_layers(setup, name)) for name in by_domain(setup.options.prompts)}
    return {"domain": domain, **bench(setup, prompt_file(setup, "measure", domain), methods)}


def outside_of(setup: Setup, domain: str) -> dict:
    known = without_domain(setup, domain)
    methods = {fallback: knnssd(known, fallback) for fallback in ("nothing", "nearest", "uniform")}
    methods["nothing"] = knnssd(known)
    methods["own"] = selfsd(own_layers(setup, domain))
    return {"domain": domain, **bench(setup, prompt_file(setup, "measure", domain), methods)}


def page_head(files: dict[str, dict]) -> list[str]:
    benches = [file for file in files.values() if "methods" in file]
    any_file = next(iter(files.values()))["identity"]
    measured = (
        f"Speeds are of {tables.n_runs(benches)} other prompts, alike of every domain, the first turn of each, "
        f"answers of up to {benches[0]['identity']['tokens']} tokens, greedy. Methods take turns prompt by prompt; "
        "*speedup* is the decode time of plain decoding over the method's."
        if benches
        else ""
    )
    return [
        "# Layers by what a prompt is about, measured",
        "",
        *how_measured("domains", files.values()),
        *prose(
            "KNN-SSD (Song et al., 2025) searches for the layers to leave out in each domain of prompts, and takes "
            "those of the typical prompt that a new one is nearest to. It pays where layers that one domain can do "
            "without are needed in another. Of small models that is not so: all of their layers are needed "
            f"everywhere. The model here, `{MODEL}`, was therefore made for it from SmolLM2-135M (`scripts/models.py "
            f"make {MODEL} --prompts FILE`): a layer tells the domain of a text by the mean of its states so far; "
            "every other layer gives up a part of its MLP's output, which follows it once for each domain as a "
            "layer whose gates are closed in other domains. So it is planted that layers depend on the domain, and "
            "by how much; what is measured is what routing and searching make of it, not how often such models are "
            "met. The layer that tells domains was fitted on the first 12 prompts of each category of the file that "
            "the model was made from: if that is the file of this page, the model knows the domain of the prompts "
            "that are measured, but anchors and layers do not."
        ),
        *prose(
            f"The domains are the categories of the prompts. Anchors are made of {any_file['build_prompts']} prompts "
            f"of each at most, layers searched on the answers to {any_file['texts']} of these, of "
            f"{any_file['search_tokens']} tokens (the paper: 1000 prompts, 8 answers, 1000 steps of Bayesian "
            "optimisation; here KnapSpec's search). Drafts have at most 12 tokens and end behind one that is less "
            "probable than 0.8, as in KNN-SSD's program; `swift`, `knapspec` and `auto` are as forerun has them. "
            f"{measured}"
        ),
    ]


if __name__ == "__main__":
    Domains().main()
