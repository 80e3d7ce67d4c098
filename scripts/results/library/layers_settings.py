"""What is measured of a model that drafts for itself: searches for layers, and runs of `forerun bench spec`."""

from dataclasses import dataclass, field

DEEP, SMALL, OTHER = "smollm2-deep", "smollm2", "gemma3-270m"

# ---- Methods, as their authors have them ----

SWIFT = "swift:search=published:share=1:skip=0.45:tokens=25:threshold=0.8"
UNIFORM = "uniform:skip=0.45:tokens=25:threshold=0.8"
KNAPSPEC = "knapspec:threshold=0.7:tokens=10:cap=0.5:interval=64:cosine=0.5:check=0:share=1:adapt=false"
KNAPSPEC_ALL = f"{KNAPSPEC}:branches=0:window=64"  # all its branches, of all tokens of five verifications
CLASP = "clasp:share=1:skip=0.25:tokens=10:threshold=0.7"
DEL = "del:interval=1:share=1:window=64:tokens=17"


def changed(method: str, **options: object) -> str:
    """The method with other options, in the order they have."""
    name, *given = method.split(":")
    pairs = dict(option.split("=", 1) for option in given) | {key: str(value) for key, value in options.items()}
    return ":".join([name, *(f"{key}={value}" for key, value in pairs.items())])


def layers(search: str) -> str:
    """Stands for the file of what a search found."""
    return "{" + search + "}"


# ---- Searches ----


@dataclass(frozen=True)
class Search:
    """`forerun layers search`."""

    flags: tuple[object, ...]
    part: float = 1  # of the candidates; 0: as many as the flags say
    texts: int = 0  # 0: as the page's option says
    tokens: int = 64
    model: str = DEEP


MEASURED = ("--objective", "measured")
# The published search by time uses 8 prompts and 32 tokens.
SELFSD_TEXTS, SELFSD_TOKENS = 2, 32
FIND = {
    "knapspec": Search(("--method", "knapspec"), part=0),
    "knapspec, half of the weight": Search(("--method", "knapspec", "--cap", 0.5), part=0),
    "bayesian": Search(("--method", "bayesian")),
    "neighbour": Search(("--method", "neighbour")),
    "bayesian, measured": Search(("--method", "bayesian", *MEASURED), 0.5, SELFSD_TEXTS, SELFSD_TOKENS),
    "SWIFT as published": Search(("--method", "swift")),
    "Draft & Verify, expected": Search(("--method", "selfsd", "--objective", "expected")),
    "Draft & Verify as published": Search(("--method", "selfsd", *MEASURED), 1, SELFSD_TEXTS, SELFSD_TOKENS),
}
BEST, SELFSD = "knapspec", "Draft & Verify as published"  # that others draft with
OF_OTHER = "knapspec of the other model"

# Sets of many sizes, good and bad ones, to compare what is expected of them with what comes of them.
CAPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
EVEN = (0.05, 0.1, 0.2, 0.3, 0.45)
KNAPSACKS = {
    f"knapsack, at most {cap:.0%}": Search(("--method", "knapspec", "--cap", cap, "--candidates", 8), part=0)
    for cap in CAPS
}
# The first candidate of SWIFT's search is the even set.
EVEN_SETS = {
    f"even, {skip:.0%}": Search(("--method", "swift", "--skip", skip, "--candidates", 1), part=0) for skip in EVEN
}
SEARCHES = {
    **FIND,
    **KNAPSACKS,
    **EVEN_SETS,
    OF_OTHER: Search(("--method", "knapspec", "--candidates", 40), part=0, model=OTHER),
}


# ---- Runs ----


@dataclass(frozen=True)
class Bench:
    """One run of `forerun bench spec`: methods by what tables call them, in turn, beside plain decoding."""

    methods: dict[str, str]
    model: str = DEEP
    prompts: float = 1  # as a share of what the page's option says
    tokens: float = 1
    flags: tuple[object, ...] = field(default=())

    def described(self) -> dict:
        """As JSON has it; where files of layers lie does not matter."""
        return {"model": self.model, "methods": self.methods, "flags": list(self.flags)}


def named(*methods: str) -> dict[str, str]:
    return {method: method for method in methods}


OWN = ("--tree", "own")
LONG = ("--ignore-eos",)
SKIPS = (0.3, 0.4, 0.5, 0.6, 0.7)
THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9)
INTERVALS = (16, 32, 64, 128, 256)
SHARES = (0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
SELFSD_OURS = f"selfsd:layers={layers(BEST)}"
SWIFT_TREE, UNIFORM_TREE = f"{SWIFT}:siblings=true", f"{UNIFORM}:siblings=true"

# As published beside ours; a run for each paper, since some take long.
PUBLISHED = {
    "published-selfsd": {
        "Self-SD as published": f"selfsd:layers={layers(SELFSD)}:adapt=true:tokens=12:threshold=0.8",
        "`selfsd`, layers of our search": SELFSD_OURS,
    },
    "published-knapspec": {
        "KnapSpec as published": KNAPSPEC_ALL,
        "the same, 8 branches of 4 tokens": KNAPSPEC,
        "`knapspec`": "knapspec",
    },
    "published-clasp": {
        "CLaSp as published": changed(CLASP, interval=1),
        "the same, every 64 steps": changed(CLASP, interval=64),
        "`clasp`": "clasp",
    },
    "published-del": {"DEL as published": DEL, "`del`": "del"},
}
ABLATION = {
    "SWIFT as published": SWIFT_TREE,
    "without early stopping": changed(SWIFT_TREE, threshold=0),
    "without dynamic verification": SWIFT,
    "without optimisation": UNIFORM_TREE,
    "with our search": "swift:siblings=true",
    "`swift`": "swift",
}
AUTO_LAYERS = ("none", "knapspec", "swift", "clasp", "del", "uniform")
BENCHES = {
    "speeds": Bench(
        {"selfsd": SELFSD_OURS, **named("knapspec", "swift", "clasp", "del", "uniform", "auto:layers=none", "auto")}
    ),
    "swift-ablation": Bench(ABLATION, prompts=0.5, flags=OWN),
    # All branches take half a minute.
    **{
        name: Bench(methods, prompts=1 / 3 if name == "published-knapspec" else 0.5, flags=OWN)
        for name, methods in PUBLISHED.items()
    },
    "skip-searched": Bench(
        {str(skip): changed(SWIFT_TREE, skip=skip, adapt="false") for skip in SKIPS}, prompts=0.5, flags=OWN
    ),
    "skip-even": Bench({str(skip): changed(UNIFORM_TREE, skip=skip) for skip in SKIPS}, prompts=0.5, flags=OWN),
    "knapspec-threshold": Bench({str(t): changed(KNAPSPEC, threshold=t) for t in THRESHOLDS}, prompts=0.5, flags=OWN),
    "knapspec-interval": Bench(
        {str(n): changed(KNAPSPEC, interval=n) for n in INTERVALS}, prompts=1 / 6, tokens=8, flags=(*OWN, *LONG)
    ),
    "knapspec-cap": Bench({str(cap): changed(KNAPSPEC, cap=cap) for cap in SHARES}, prompts=0.5, flags=OWN),
    "objective": Bench(
        {
            **{name: f"selfsd:layers={layers(name)}:adapt=false:tokens=10:threshold=0.7" for name in KNAPSACKS},
            **{name: f"uniform:skip={skip}:tokens=10:threshold=0.7" for name, skip in zip(EVEN_SETS, EVEN)},
        },
        prompts=0.5,
        flags=OWN,
    ),
    "small": Bench(
        {
            **{f"`auto`, `{name}`": f"auto:layers={name}" for name in AUTO_LAYERS},
            "KnapSpec as published": KNAPSPEC_ALL,
            "SWIFT as published": SWIFT_TREE,
        },
        SMALL,
        prompts=2,
        tokens=1.5,
    ),
}
SAME = {
    "same-greedy": Bench(
        {**named("uniform"), "selfsd": f"selfsd:layers={layers(OF_OTHER)}",
         **named("swift", "swift:search=published", "knapspec", "clasp", "del", "auto")},
        OTHER,
        tokens=0.5,
    ),
    "same-sampled": Bench(
        {**named("uniform"), "selfsd": SELFSD_OURS,
         **named("swift", "swift:search=published", "knapspec", "clasp", "del", "auto")},
        prompts=0.5,
        tokens=0.5,
        flags=("--temp", 0.8),
    ),
}  # fmt: skip
CONTEXT_METHODS = ("knapspec", "swift", "auto")
TRAINED = 8192  # tokens of context, DEEP was


def context_methods(n_tokens: int) -> tuple[str, ...]:
    """Reading very long texts takes minutes for each."""
    return CONTEXT_METHODS if n_tokens <= TRAINED else CONTEXT_METHODS[:1]
