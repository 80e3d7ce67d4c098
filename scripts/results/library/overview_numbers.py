"""What we reached, in a sentence for each paper, from the files of the pages. None: not measured."""

from . import stopping_files
from .measured import Methods, categories_of, low_to_high, ratio, speed
from .speculation_settings import MODELS
from .speculation_tables import DRAFTS, best_single, setting_name
from .stopping_settings import disco
from .stores_measured import by_set

Files = dict[str, dict[str, dict]]  # by page, then by name


def whole_system(files: Files) -> str | None:
    settings = [setting_name(model, draft) for model in MODELS for draft in DRAFTS]
    found = [files["speculation"][name]["methods"] for name in settings if name in files["speculation"]]
    if not found:
        return None
    over_best = [ratio(methods[best_single(methods)]["runs"], methods["auto"]["runs"]) for methods in found]
    slowest = min(speed(methods, "auto", category) for methods in found for category in categories_of(methods))
    return (
        f"**{low_to_high([speed(methods, 'auto') for methods in found])}** times, {low_to_high(over_best)} of the best single "
        f"method; the slowest category {slowest:.2f}"
    )


def sssd_with_store(files: Files) -> str | None:
    stores = list(files["stores"].values())
    with_store, without = by_set(stores, "store"), by_set(stores, "input")
    parts = [
        f"{name} **{speed(with_store[name]['methods'], 'sssd'):.2f}**, {speed(without[name]['methods'], 'sssd'):.2f} without"
        for name in with_store
        if name in without
    ]
    if not parts:
        return None
    return f"with a store of the model's answers to other prompts: {'; '.join(parts)} (SmolLM2-135M, Q4_1)"


def swift_own(files: Files) -> str | None:
    return beside_ours(files, "swift-ablation", "SWIFT as published", "swift")


def knapspec_own(files: Files) -> str | None:
    return beside_ours(files, "published-knapspec", "KnapSpec as published", "knapspec")


def beside_ours(files: Files, name: str, published: str, ours: str) -> str | None:
    """Theirs of the run with their settings, ours of the run with all methods, which has more prompts."""
    if name not in files["layers"] or "speeds" not in files["layers"]:
        return None
    theirs: Methods = files["layers"][name]["methods"]
    own: Methods = files["layers"]["speeds"]["methods"]
    model = files["layers"][name]["identity"]["model"]
    return (
        f"as published {speed(theirs, published):.2f}, {100 * theirs[published]['accept_rate']:.0f} % accepted; as "
        f"forerun has it **{speed(own, ours):.2f}**, {100 * own[ours]['accept_rate']:.0f} % ({model})"
    )


def knnssd_over_shared(files: Files) -> str | None:
    streams = [file["methods"] for name, file in files["domains"].items() if name.startswith("stream-")]
    if not streams:
        return None
    speeds = {name: low_to_high([speed(methods, name) for methods in streams]) for name in ("labelled", "shared", "unlabelled")}
    return (
        f"**{speeds['labelled']}**, {speeds['shared']} with one set for all domains, {speeds['unlabelled']} with domains "
        "that nobody named (smollm2-domains)"
    )


def disco_over_fixed(files: Files) -> str | None:
    speeds = stopping_files.read(files["stopping"]).speeds
    pairs = stopping_files.greedy_sets(speeds)
    if not pairs:
        return None
    over = stopping_files.over_best_fixed(pairs)
    cost = [ratio(rules[stopping_files.best_fixed(rules)], rules["cost"]) for _, rules in pairs]
    heuristic = [ratio(rules["heuristic"], rules[disco(name)]) for name, rules in pairs if "heuristic" in rules]
    versus = f", {low_to_high(heuristic)} times the heuristic one" if heuristic else ""
    return f"**{low_to_high(over)}** times the best fixed length{versus}; `cost`, which needs no training, {low_to_high(cost)}"
