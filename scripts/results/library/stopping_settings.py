"""What is compared about rules that end drafts: sets of prompts, and the rules with their settings."""

import argparse
import gzip
from dataclasses import dataclass
from pathlib import Path

from .setup import read_prompts

MODELS = {"smollm2-q8": "SmolLM2-135M, Q8_0", "smollm2": "SmolLM2-135M, Q4_1"}
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
FEW_LENGTHS = (1, 2, 3, 4, 5, 6, 8)
USUAL = 5  # tokens, where nobody chose
LONGEST = 16  # draft of every rule but fixed lengths and the oracle; DISCO may choose it, or a shorter one
LONGEST_OF_ORACLE = 96  # as good as no limit
TEMPERATURE = 0.8

# What is tried of the rules that have a threshold, which option it is, and what forerun has by default.
TRIED = {"confidence": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), "perplexity": (1.2, 1.5, 2.0, 3.0)}
OPTIONS = {"confidence": "lookahead-threshold", "perplexity": "lookahead-perplexity"}
DEFAULTS = {"confidence": 0.4, "perplexity": 1.5}
N_TIMED = 16  # validation prompts that thresholds are chosen on

Prompts = list[dict]
Methods = dict[str, str]  # by what the page calls a rule, how `bench spec` is told of it


@dataclass(frozen=True)
class Comparison:
    """Rules measured beside each other, on every set of prompts."""

    name: str  # in names of files
    model: str
    temperature: float
    lengths: tuple[int, ...]
    rules: tuple[str, ...]  # with their defaults
    tuned: tuple[str, ...] = ()
    others: bool = False  # classifiers of other sets too
    greedy: str = ""  # the comparison whose classifiers, trained for greedy answers, are used too

    @property
    def title(self) -> str:
        at = f", temperature {self.temperature}" if self.temperature else ""
        return MODELS[self.model] + at


COMPARISONS = {
    comparison.name: comparison
    for comparison in (
        Comparison("q8", "smollm2-q8", 0, LENGTHS, ("heuristic", "confidence", "adaptive", "roc", "perplexity", "cost"),
                   tuned=("confidence", "perplexity"), others=True),
        Comparison("q4", "smollm2", 0, FEW_LENGTHS, ("cost",)),
        Comparison("sampled", "smollm2-q8", TEMPERATURE, FEW_LENGTHS, ("confidence", "cost"),
                   tuned=("confidence",), greedy="q8"),
    )
}  # fmt: skip


# ---- Rules ----


def fixed(lengths: tuple[int, ...]) -> Methods:
    return {f"fixed {n}": f"draft:lookahead=fixed:lookahead-tokens={n}" for n in lengths}


def with_defaults(rules: tuple[str, ...]) -> Methods:
    return {rule: f"draft:lookahead={rule}:tokens={LONGEST}" for rule in rules}


def with_threshold(rule: str, value: float) -> str:
    return f"draft:lookahead={rule}:{OPTIONS[rule]}={value}:tokens={LONGEST}"


def with_classifier(file: Path) -> str:
    return f"draft:lookahead=disco:lookahead-classifier={file}"


ORACLE: Methods = {"oracle": f"draft:lookahead=oracle:tokens={LONGEST_OF_ORACLE}"}


def disco(name: str, greedy: bool = False) -> str:
    """What a classifier is called, by the set that it was trained on."""
    return f"disco ({name}{', greedy' if greedy else ''})"


def tuned(rule: str) -> str:
    return f"{rule}, tuned"


# ---- Prompts ----

DOCUMENTS = ["README*", "*.txt", "*.txt.gz", "*.md", "*.md.gz", "*.rst", "*.rst.gz"]
SHORTEST_DOCUMENT, LONGEST_DOCUMENT = 1000, 1500  # characters
PER_PACKAGE = 3
SUMMARIES = {"set": "summaries", "category": "summarization"}


def sets_of(options: argparse.Namespace) -> dict[str, Prompts]:
    """Those given by name, and summaries of --prompts and of documents. If there are none, all prompts are one set."""
    sets = {name: read_prompts(Path(file)) for name, file in (pair.split("=", 1) for pair in options.set)}
    name, everything = SUMMARIES["set"], read_prompts(options.prompts)
    if name not in sets:
        sets[name] = [prompt for prompt in everything if prompt.get("category") == SUMMARIES["category"]]
    if options.documents is not None:
        sets[name] += document_prompts(options.documents)
    sets = {name: prompts for name, prompts in sets.items() if prompts}
    return sets or {"all": everything}


def where_from(options: argparse.Namespace, name: str) -> str:
    """What a set is made of, in words."""
    given = dict(pair.split("=", 1) for pair in options.set)
    if name not in (*given, SUMMARIES["set"]):
        return options.prompts.name
    category = f"the category {SUMMARIES['category']} of {options.prompts.name}"
    words = Path(given[name]).name if name in given else category
    documents = name == SUMMARIES["set"] and options.documents is not None
    return f"{words} and beginnings of documents in {options.documents}" if documents else words


def split(prompts: Prompts, n_test: int, n_validation: int, n_training: int) -> dict[str, Prompts]:
    """Each prompt has one use. Where there are too few for that, as in tries, all have every use."""
    ends = [n_test, n_test + n_validation, n_test + n_validation + n_training]
    if len(prompts) <= ends[1]:
        return {"test": prompts[:n_test], "validation": prompts[:n_validation], "training": prompts[:n_training]}
    starts = [0, *ends]
    return {use: prompts[start:end] for use, start, end in zip(("test", "validation", "training"), starts, ends)}


def document_prompts(folder: Path) -> Prompts:
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
