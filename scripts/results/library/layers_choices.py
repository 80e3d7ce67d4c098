"""Sections about which layers are left out: what searches find, what their objective foretells, where none can go."""

from html import escape
from typing import NamedTuple

from .correlation import pearson, spearman
from .layers_settings import CONTEXT_METHODS, EVEN, EVEN_SETS, FIND, KNAPSACKS, SAME, SMALL, TRAINED
from .layers_tables import code, drafting, methods_of
from .markdown import picture, prose, section, table
from .measured import Methods, interval, same_text, speed, speed_interval
from .page import Written
from .svg import plot

OBJECTIVE = "## What the objective foretells"
FOUND = "## What searches find"
CONTEXTS = "## Long texts"
NOTHING = "## Where nothing can be left out"
SAME_TEXT = "## The same text"

# KnapSpec's figure 2, Llama-3.1-8B on GovReport: Pearson's correlation with throughput.
PAPERS_CORRELATION = {"expected speed": 0.837, "share accepted": 0.538}


def search_file(name: str) -> str:
    kept = "".join(c if c.isalnum() else " " for c in name.lower())
    return "-".join(["search", *kept.split()])


def found_by(files: dict[str, dict], name: str) -> dict | None:
    return files.get(search_file(name), {}).get("found")


# ---- The objective ----


class Point(NamedTuple):
    """A set of layers, as expected and as measured."""

    n_blocks: int  # left out
    expected: float
    measured: float
    accepted: float


def objective_points(files: dict[str, dict]) -> dict[str, Point]:
    methods = methods_of(files, "objective")
    points = {}
    for name in drafting(methods):
        found = found_by(files, name)
        if found is None or not methods[name]["drafted"]:
            continue
        if name in KNAPSACKS:
            n_blocks, expected = len(found["skipped"]), found["speedup"]
        else:
            skip = dict(zip(EVEN_SETS, EVEN))[name]
            n_blocks = min(2 * (found["n_layers"] - 2), round(2 * found["n_layers"] * skip))
            expected = found["best_so_far"][0]
        points[name] = Point(n_blocks, expected, speed(methods, name), methods[name]["accept_rate"])
    return points


def correlation_table(points: dict[str, Point]) -> list[str]:
    groups = {
        "all sets": list(points.values()),
        "knapsack's sets": [point for name, point in points.items() if name in KNAPSACKS],
    }
    rows = []
    for which, chosen in groups.items():
        measured = [point.measured for point in chosen]
        for what, values in {
            "expected speed": [point.expected for point in chosen],
            "share accepted": [point.accepted for point in chosen],
        }.items():
            cells = [f"{r:.3f}" if (r := f(values, measured)) is not None else "" for f in (pearson, spearman)]
            rows.append([what, which, len(chosen), *cells, PAPERS_CORRELATION[what]])
    return table(["measured speed and", "of", "sets", "Pearson", "Spearman", "the paper's Pearson"], rows)


def objective_section(files: dict[str, dict]) -> Written:
    points = objective_points(files)
    text = prose(
        """KnapSpec chooses by expected tokens per time. Here are sets of many sizes: what the knapsack gives for at
        most some share of the weight, and even ones. *Expected* is what `forerun layers search` says of a set by
        agreement on other prompts and by calibration, as if drafts had the best length; *measured* is the speedup
        of drafting with it, up to 10 tokens, an end behind one below 0.7. A knapsack of which no set pays is left
        out. The paper's numbers (its figure 2) are of Llama-3.1-8B on GovReport."""
    )
    rows = [
        [name, point.n_blocks, f"{point.expected:.2f}", f"{point.measured:.2f}", f"{100 * point.accepted:.0f} %"]
        for name, point in points.items()
    ]
    lines = section(OBJECTIVE, text, table(["layers", "blocks left out", "expected", "measured", "accepted"], rows))
    if not lines:
        return Written([])
    clouds = {
        kind: [(points[name].expected, points[name].measured) for name in names if name in points]
        for kind, names in {"knapsack": KNAPSACKS, "even": EVEN_SETS}.items()
    }
    there = {kind: cloud for kind, cloud in clouds.items() if cloud}
    lines += [*correlation_table(points), *picture("layers", "objective", "expected and measured speed")]
    return Written(lines, {"objective": plot("expected speed", "measured speed", there, as_points=True)})


# ---- Searches ----


def found_section(files: dict[str, dict]) -> Written:
    found = {name: result for name in FIND if (result := found_by(files, name))}
    text = prose(
        """`forerun layers search` on answers to the other half of the prompts: expected tokens per second over
        plain decoding's, and over what leaving out just the planted blocks gives; some that are not planted can go
        as well, so a search can be better than that. A search whose *best candidate* is below 1 leaves out nothing.
        *Measured* and Draft & Verify as published: by drafting, which is noisy. `bayesian` and `neighbour` begin
        with the best of a few sets that the knapsack gives with 8 branches over 4 tokens. Searches were cut short
        at the candidates shown, if they did not end by themselves; the papers have 1,000."""
    )
    lines = section(FOUND, text, found_table(found))
    if not lines:
        return Written([])
    steps = {name: list(enumerate(result["best_so_far"], 1)) for name, result in found.items() if result["best_so_far"]}
    n_layers = next(iter(found.values()))["n_layers"]
    drawn = {
        "searches": plot("candidates", "speed of the best set so far", steps, log_x=True),
        "layers": layer_picture({name: result["skipped"] for name, result in found.items()}, n_layers),
    }
    lines += prose("Blocks that are left out, attention (red) above MLP (blue), from the first layer to the last:")
    lines += picture("layers", "layers", "blocks left out")
    return Written([*lines, *picture("layers", "searches", "the best set after each candidate")], drawn)


def found_table(found: dict[str, dict]) -> list[str]:
    rows = []
    for name, result in found.items():
        planted = set(result.get("planted", []))
        rows.append([
            name,
            result["skipped_attention"],
            result["skipped_mlp"],
            f"{len(planted & set(result['skipped']))} of {len(planted)}" if planted else "",
            f"{result['best_so_far'][-1]:.2f}" if result["best_so_far"] else "",
            f"{result['speedup'] / result['planted_speedup']:.2f}" if planted and result.get("planted_speedup") else "",
            result["candidates"],
            f"{result['seconds']:.0f}",
        ])  # fmt: skip
    head = ["search", "attention left out", "MLP left out", "of the planted", "best candidate", "of the planted set's",
            "candidates", "seconds"]  # fmt: skip
    return table(head, rows)


def layer_picture(sets: dict[str, list[int]], n_layers: int) -> str:
    """Two rows for each set, attention and MLP, a cell for each layer: full where it is left out."""
    left, cell, step = 200, 600 / n_layers, 34
    size = f"0 0 {left + 620} {step * len(sets) + 20}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-size="12">']
    for row, (name, skipped) in enumerate(sets.items()):
        top = 8 + step * row
        parts.append(f'<text x="{left - 8}" y="{top + 16}" text-anchor="end" fill="#888">{escape(name)}</text>')
        for kind, color in ((0, "#c0504d"), (1, "#4f81bd")):
            y = top + 13 * kind
            cells = [block // 2 for block in skipped if block % 2 == kind]
            parts.append(f'<rect x="{left}" y="{y}" width="600" height="11" fill="#8883"/>')
            parts += [
                f'<rect x="{left + cell * layer:.1f}" y="{y}" width="{cell:.1f}" height="11" fill="{color}"/>'
                for layer in cells
            ]
    return "\n".join([*parts, "</svg>", ""])


# ---- Long texts, small models, the same text ----


def long_texts(files: dict[str, dict]) -> dict[int, tuple[dict, Methods]]:
    """By length: what was found to leave out, and how methods did."""
    lengths = sorted(int(name.removeprefix("context-")) for name in files if name.startswith("context-"))
    return {
        n: (found, methods_of(files, f"context-{n}")) for n in lengths if (found := found_by(files, f"context {n}"))
    }


def all_same(methods: Methods) -> str:
    """Of the texts of all methods that draft."""
    n_same, n_texts = (sum(methods[name][key] for name in drafting(methods)) for key in ("identical", "prompts"))
    return f"{n_same} of {n_texts}"


def context_section(files: dict[str, dict]) -> Written:
    contexts = long_texts(files)
    rows = [
        [f"{n:,}", found["skipped_attention"], found["skipped_mlp"], f"{found['speedup']:.2f}",
         *(f"{speed(methods, name):.2f}" if name in methods else "" for name in CONTEXT_METHODS), all_same(methods)]
        for n, (found, methods) in contexts.items()
    ]  # fmt: skip
    text = prose(
        f"""A prompt of about so many tokens, made of prompts one after the other: what the knapsack leaves out on
        it and the speed it expects, and the measured speedup of methods that begin to choose layers with it (one
        answer of up to 128 tokens each, so a rough number). The model was trained for {TRAINED:,} tokens; behind
        more its text is no longer sensible, and only `knapspec` was measured, since reading takes long. Attention
        costs more behind long texts: the paper (its figure 3) finds that more of it goes there."""
    )
    methods = map(code, CONTEXT_METHODS)
    head = ["context", "attention left out", "MLP left out", "expected speed", *methods, "the same text"]
    lines = section(CONTEXTS, text, table(head, rows))
    if not lines:
        return Written([])
    kinds = {"attention left out": "skipped_attention", "MLP left out": "skipped_mlp"}
    chosen = {name: [(n, found[key]) for n, (found, _) in contexts.items()] for name, key in kinds.items()}
    speeds = {"expected": [(n, found["speedup"]) for n, (found, _) in contexts.items()]}
    for name in CONTEXT_METHODS:
        speeds[name] = [(n, speed(methods, name)) for n, (_, methods) in contexts.items() if name in methods]
    lines += picture("layers", "contexts", "what is left out, by context")
    lines += picture("layers", "context-speeds", "speed by context")
    drawn = {
        "contexts": plot("tokens of context", "blocks left out", chosen, log_x=True),
        "context-speeds": plot("tokens of context", "speedup", speeds, log_x=True),
    }
    return Written(lines, drawn)


def small_section(files: dict[str, dict]) -> Written:
    text = prose(
        f"""`{SMALL}` itself, none of whose blocks was made redundant: `auto` with each way to choose layers ought
        to be no slower than `auto` without; below it two methods as published, alone. *Own*: drafted tokens that
        were the model's."""
    )
    return Written(section(NOTHING, text, small_table(methods_of(files, "small"))))


def small_table(methods: Methods) -> list[str]:
    names = drafting(methods)
    if not names:
        return []
    first = methods[names[0]]
    rows = [
        [name, speed_interval(methods, name), f"{100 * result['draft_share']:.1f} %",
         f"{result['by_source'].get('layers', {}).get('drafted', 0)} of {result['drafted']}",
         interval(first["runs"], result["runs"]), same_text(result)]
        for name in names if (result := methods[name])
    ]  # fmt: skip
    head = ["method", "speedup", "drafting", "own", f"decode speed over {names[0]}", "the same text"]
    return table(head, rows)


def same_section(files: dict[str, dict]) -> Written:
    titles = {"same-greedy": "greedy", "same-sampled": "temperature 0.8"}
    there = {name: methods for name in SAME if (methods := methods_of(files, name))}
    names = list(dict.fromkeys(method for methods in there.values() for method in drafting(methods)))
    rows = [
        [f"`{SAME[name].model}`, {titles[name]}", *(same_text(methods[n]) if n in methods else "" for n in names)]
        for name, methods in there.items()
    ]
    text = prose("Prompts whose tokens are plain decoding's, besides those of the tables above; sampling with a seed.")
    return Written(section(SAME_TEXT, text, table(["", *map(code, names)], rows)))
