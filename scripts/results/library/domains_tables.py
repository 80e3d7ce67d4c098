"""Tables of layers by domain."""

from .markdown import picture, prose, section, table
from .measured import Methods, ratio, same_text, speed, speed_interval
from .svg import plot

ROUTING = "## Which domain a prompt is of"
MATRIX = "## Layers of one domain for prompts of another"
STREAM = "## One set for all, or one for each domain"
FOUND = "## Domains that nobody named"
OUTSIDE = "## Prompts of a domain that is not known"

ROUTING_HEAD = [
    "domain", "prompts", "by the mean", "by the last", "blocks left out", "blocks of its own", "expected speedup",
]  # fmt: skip
STREAM_METHODS = {
    "shared": "`selfsd`, one set for all domains",
    "labelled": "`knnssd`, domains by category",
    "unlabelled": "`knnssd`, domains that were found",
    "swift": "`swift`",
    "knapspec": "`knapspec`",
    "auto": "`auto`",
}
# Song et al., table 2: by model and method, at ratios of 0.0, 0.3, 0.7 and 1.0.
PAPER_RATIOS = (0.0, 0.3, 0.7, 1.0)
PAPER_STREAMS = {
    ("LLaMA-2-13B", "one set for all (SSD_M)"): (1.23, 1.27, 1.24, 1.23),
    ("LLaMA-2-13B", "KNN-SSD"): (1.42, 1.45, 1.43, 1.45),
    ("Qwen-2.5-14B", "one set for all (SSD_M)"): (1.40, 1.36, 1.39, 1.38),
    ("Qwen-2.5-14B", "KNN-SSD"): (1.60, 1.64, 1.63, 1.61),
}
# Song et al., table 5 (LLaMA-2-13B-Chat): speedup on data of no known domain, by one set for all and by KNN-SSD.
PAPER_OUTSIDE = {"XSUM": (0.99, 1.24), "MATH": (0.93, 1.17), "Alpaca": (0.92, 1.15)}


def taken(result: dict) -> str:
    return f"{result['accept_rate']:.2f}" if result["drafted"] else "-"


def n_runs(benches: list[dict]) -> int:
    return max(result["prompts"] for file in benches for result in file["methods"].values())


def of_kind(files: dict[str, dict], kind: str, key: str) -> dict:
    """Methods by `key` of the files whose names begin with `kind`."""
    return {file[key]: file["methods"] for name, file in files.items() if name.startswith(f"{kind}-")}


def in_order(files: dict[str, dict], domains: dict[str, Methods]) -> dict[str, Methods]:
    """As the file of domains has them."""
    if "labelled" not in files:
        return domains
    names = [domain["name"] for domain in files["labelled"]["built"]["domains"]]
    return {name: domains[name] for name in names if name in domains}


# ---- Which domain a prompt is of ----


def routing_section(files: dict[str, dict]) -> list[str]:
    if "labelled" not in files:
        return []
    domains = files["labelled"]["built"]["domains"]
    rows = [
        [d["name"], d["prompts"], *(d["at_home"][kind] for kind in ("mean", "last")),
         f"{d['skipped_attention']} and {d['skipped_mlp']}", n_own_blocks(files["labelled"]["built"], d["name"]),
         f"{d['speedup']:.2f}"]
        for d in domains
    ]  # fmt: skip
    n_all = sum(d["prompts"] for d in domains)
    all_home = [sum(d["at_home"][kind] for d in domains) for kind in ("mean", "last")]
    rows.append(["all", n_all, *(f"{n} ({n / n_all:.0%})" for n in all_home), "", "", ""])
    return section(
        ROUTING,
        prose(
            "How many prompts are nearest to an anchor of their own domain when its anchors are made without them: "
            "by the mean of the states that leave the last layer, as KNN-SSD's program has it, and by the last of "
            "these states, as the paper says; it reports 100 % on its five datasets. The last columns are of the "
            "layers that were then found for each domain: attention and MLP blocks that are left out, blocks that run "
            "in this domain and in no other, and the speedup that the search expects."
        ),
        table(ROUTING_HEAD, rows),
    )


def n_own_blocks(built: dict, name: str) -> int:
    """Blocks that the layers of all other domains leave out, and this one's do not."""
    own = next(set(d["skipped"]) for d in built["domains"] if d["name"] == name)
    others = [set(d["skipped"]) for d in built["domains"] if d["name"] != name]
    return len(set(range(built["n_blocks"])).intersection(*others) - own)


# ---- Layers of one domain for prompts of another ----


def matrix_section(files: dict[str, dict]) -> list[str]:
    of = in_order(files, of_kind(files, "matrix", "domain"))
    if not of:
        return []
    names = list(of)
    speeds = {a: {b: speed(of[b], a) for b in names} for a in names}
    rows = [[f"of {a}", *(marked(f"{speeds[a][b]:.2f}", a == b) for b in names)] for a in names]
    accepted = [[f"of {a}", *(marked(taken(of[b][a]), a == b) for b in names)] for a in names]
    return section(
        MATRIX,
        prose(
            "Speedup of prompts of each domain (columns) with the layers that were searched for one (rows); bold "
            "where they are the domain's own. Song et al. (section 1 and figure 1) say that layers found for "
            f"summaries bring 1.35 there and less than 1.10 elsewhere. {matrix_words(speeds)}"
        ),
        table(["layers", *names], rows),
        prose("The share of drafted tokens that are taken, likewise:"),
        table(["layers", *names], accepted),
    )


def marked(text: str, own: bool) -> str:
    return f"**{text}**" if own else text


def matrix_words(speeds: dict[str, dict[str, float]]) -> str:
    own = [speeds[a][a] for a in speeds]
    other = [speeds[a][b] for a in speeds for b in speeds if a != b]
    best = sum(max(speeds, key=lambda a: speeds[a][b]) == b for b in speeds)
    return (
        f"Here the mean is {mean(own):.2f} with the domain's own layers and {mean(other):.2f} with another's; in "
        f"{best} of {len(own)} domains their own layers are the fastest."
    )


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# ---- Streams ----


def stream_section(files: dict[str, dict]) -> list[str]:
    of = dict(sorted(of_kind(files, "stream", "ratio").items()))
    if not of:
        return []
    head = ["", *(f"ratio {ratio:g}" for ratio in of)]
    rows = [[words, *(speed_interval(m, name) for m in of.values())] for name, words in STREAM_METHODS.items()]
    details = [
        [words, *(f"{taken(m[name])}, {m[name]['tokens_per_step']:.2f}, {same_text(m[name])}" for m in of.values())]
        for name, words in STREAM_METHODS.items()
    ]
    return section(
        STREAM,
        prose(
            "Streams of prompts of all domains, as in the paper: the ratio is the chance that the next prompt is of "
            "another domain. Speedup, in brackets where 95 % of resampled sets of prompts lie. `knnssd` takes the "
            "nearest anchor's layers however far that is, as the paper's program does. Which layers `selfsd` and "
            "`knnssd` take for a prompt does not depend on the order of prompts; the other three learn as they go "
            "on."
        ),
        prose(stream_words(of)),
        table(head, rows),
        picture("domains", "streams", "speedup by mix ratio") if len(of) > 1 else [],
        prose("The share of drafted tokens that are taken, tokens per pass, and how many texts are plain decoding's:"),
        table(head, details),
        prose("Song et al., table 2 (speedups that their formula expects of acceptance and skipped layers):"),
        table(["model", "", *(f"ratio {ratio:g}" for ratio in PAPER_RATIOS)],
              ([*key, *(f"{value:.2f}" for value in values)] for key, values in PAPER_STREAMS.items())),
    )  # fmt: skip


def stream_words(of: dict[float, Methods]) -> str:
    def over(name: str, other: str) -> float:
        pairs = [(m[other]["runs"], m[name]["runs"]) for m in of.values()]
        return ratio([run for slow, _ in pairs for run in slow], [run for _, fast in pairs for run in fast])

    return (
        f"Over all streams, routed layers are {over('labelled', 'shared'):.2f} times as fast as one set for all, and "
        f"with domains that were found {over('unlabelled', 'shared'):.2f} times; the paper's numbers below make that "
        f"{paper_over():.2f}."
    )


def paper_over() -> float:
    """KNN-SSD over one set for all, on average."""
    ratios = []
    for (model, method), values in PAPER_STREAMS.items():
        if method == "KNN-SSD":
            one = PAPER_STREAMS[model, "one set for all (SSD_M)"]
            ratios += [ours / theirs for ours, theirs in zip(values, one)]
    return mean(ratios)


def plots(files: dict[str, dict]) -> dict[str, str]:
    of = dict(sorted(of_kind(files, "stream", "ratio").items()))
    if len(of) < 2:
        return {}
    lines = {
        words.replace("`", ""): [(ratio, speed(m, name)) for ratio, m in of.items()]
        for name, words in STREAM_METHODS.items()
    }
    return {"streams": plot("chance that the next prompt is of another domain", "speedup", lines)}


# ---- Domains that were found ----


def purity(domains: list[dict]) -> tuple[int, int]:
    """How many prompts are of the category that most prompts of their domain are of, and of how many."""
    return sum(max(d["categories"].values()) for d in domains), sum(d["prompts"] for d in domains)


def found_section(files: dict[str, dict]) -> list[str]:
    if "unlabelled" not in files:
        return []
    domains = files["unlabelled"]["built"]["domains"]
    n_pure, n_all = purity(domains)
    rows = [[d["name"], d["prompts"], ", ".join(f"{c} {n}" for c, n in by_count(d)), d["at_home"]["mean"],
             f"{d['speedup']:.2f}"] for d in domains]  # fmt: skip
    return section(
        FOUND,
        prose(
            "`forerun domains build --unlabelled K` ignores categories: K-means over the prompts' vectors makes the "
            "domains, as many as there are categories (the paper's text has it so; its program clusters within "
            f"known domains). {n_pure} of {n_all} prompts ({n_pure / n_all:.0%}) are in a domain most of whose "
            "prompts are of their category. What that is worth is in the tables of streams above. On Alpaca, which "
            "has no categories, Song et al. (table 6) report 1.05 with one cluster, 1.17 with three, 1.23 with five "
            "and with seven."
        ),
        table(["domain", "prompts", "of the categories", "find back to it", "expected speedup"], rows),
    )


def by_count(domain: dict) -> list[tuple[str, int]]:
    return sorted(domain["categories"].items(), key=lambda pair: -pair[1])


# ---- Prompts of no known domain ----


def outside_section(files: dict[str, dict]) -> list[str]:
    of = in_order(files, of_kind(files, "outside", "domain"))
    names = ("nothing", "nearest", "uniform", "own")
    rows = [
        [domain, drafted_for(m["nothing"]), *(f"{speed(m, name):.2f}, {taken(m[name])}" for name in names)]
        for domain, m in of.items()
    ]
    if rows:
        rows.append(["all", "", *(f"{overall(of, name):.2f}" for name in names)])
    paper = ([data, f"{one:.2f}", f"{knn:.2f}"] for data, (one, knn) in PAPER_OUTSIDE.items())
    return section(
        OUTSIDE,
        prose(
            "Each domain in turn is taken out of the file of domains, and its prompts are answered with what is "
            "left: speedup, and the share of drafted tokens that are taken. As forerun is set, a prompt that is "
            "like no known one is not drafted for (*drafted for* counts the others); `nearest` takes the nearest "
            "layers all the same, as the paper's program does; `uniform` leaves out half of the blocks, spread "
            "evenly, for prompts that are like no known one. Then what the domain's own layers would have brought."
        ),
        prose("Song et al., table 5 (LLaMA-2-13B-Chat), on data that no anchor is of:"),
        table(["data", "Self-SD", "KNN-SSD"], paper),
        prose("Here:"),
        table(["domain", "drafted for", "as it is set", "`nearest`", "`uniform`", "its own layers"], rows),
    )


def drafted_for(result: dict) -> str:
    return f"{sum(run['drafted'] > 0 for run in result['runs'])} of {result['prompts']}"


def overall(of: dict[str, Methods], name: str) -> float:
    slow = [run for methods in of.values() for run in methods["none"]["runs"]]
    return ratio(slow, [run for methods in of.values() for run in methods[name]["runs"]])
