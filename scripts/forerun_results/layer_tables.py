"""Tables and plots of what a model's own drafts bring."""

from pathlib import Path

from .measured import decode_ms, draft_step_ms, pass_cost, row
from .svg import plot


def write_page(
    output: Path, calibration: dict, searches: dict, speeds: dict, small: dict, same: dict, contexts: dict
) -> None:
    lines = [
        *speed_table(speeds, calibration),
        *search_table(searches),
        *context_table(contexts),
        *small_table(small),
        *same_table(same),
        "![the best set after each candidate](searches.svg)",
        "",
        "![what is left out, by context](contexts.svg)",
        "",
    ]
    (output / "self-drafting.md").write_text("\n".join(lines))
    trajectories = {name: list(enumerate(found["best_so_far"], 1)) for name, found in searches.items()}
    (output / "searches.svg").write_text(plot("candidates", "expected speed", trajectories, log_x=True))
    kinds = {"attention left out": "skipped_attention", "MLP left out": "skipped_mlp"}
    choices = {name: [(n, found[key]) for n, found in contexts.items()] for name, key in kinds.items()}
    (output / "contexts.svg").write_text(plot("tokens of context", "blocks left out", choices, log_x=True))


def speed_table(speeds: dict, calibration: dict) -> list[str]:
    lines = [
        "| method | prompts | the same text | accepted | draft step | speedup | ceiling | tokens per pass |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run, methods in speeds.items():
        plain = step_ms(methods["none"])
        for name, result in methods.items():
            if name == "none":
                continue
            of_model = result["by_source"].get("model", {"drafted": 0, "tested": 0, "accepted": 0})
            is_chain = list(result["by_source"]) == ["model"]
            drafting = draft_step_ms(result) / plain if is_chain else None
            agreement = of_model["accepted"] / of_model["tested"] if of_model["tested"] else 0
            best = f"{ceiling(agreement, drafting, calibration):.2f}" if drafting is not None else ""
            cells = [
                f"`{name}`" + (", mixed stream" if "stream" in run else ""),
                result["prompts"],
                result["identical"],
                f"{100 * result['accept_rate']:.0f} %",
                f"{drafting:.2f}" if drafting is not None else "",
                with_interval(result),
                best,
                f"{result['tokens_per_step']:.2f}",
            ]
            lines.append(row(cells))
    return [*lines, ""]


def ceiling(agreement: float, draft_step: float, calibration: dict) -> float:
    """The speed of chains of the best length, were the model's other costs as measured."""
    cost = pass_cost(calibration)
    best, expected, chance = 0.0, 1.0, 1.0
    for n in range(26):
        best = max(best, expected / (n * draft_step + cost(n + 1) / cost(1)))
        chance *= agreement
        expected += chance
    return best


def search_table(searches: dict) -> list[str]:
    lines = [
        "| search | attention left out | MLP left out | of the planted | expected speed | of the planted set's | candidates | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in searches.items():
        planted = set(found.get("planted", []))
        cells = [
            name,
            found["skipped_attention"],
            found["skipped_mlp"],
            f"{len(planted & set(found['skipped']))} of {len(planted)}",
            f"{found['speedup']:.2f}",
            f"{found['speedup'] / found['planted_speedup']:.2f}" if planted else "",
            found["candidates"],
            f"{found['seconds']:.0f}",
        ]
        lines.append(row(cells))
    return [*lines, ""]


def context_table(contexts: dict) -> list[str]:
    lines = ["| context | attention left out | MLP left out | expected speed |", "|---|---|---|---|"]
    for n, found in contexts.items():
        lines.append(row([f"{n:,}", found["skipped_attention"], found["skipped_mlp"], f"{found['speedup']:.2f}"]))
    return [*lines, ""]


def small_table(methods: dict) -> list[str]:
    first = next(name for name in methods if name != "none")
    lines = [f"| method | speedup | drafting | decode speed over `{first}` |", "|---|---|---|---|"]
    for name, result in methods.items():
        if name != "none":
            ratio = decode_ms(methods[first]["runs"]) / decode_ms(result["runs"])
            lines.append(
                row([f"`{name}`", with_interval(result), f"{100 * result['draft_share']:.1f} %", f"{ratio:.3f}"])
            )
    return [*lines, ""]


def same_table(same: dict) -> list[str]:
    names = [name for name in next(iter(same.values())) if name != "none"]
    lines = [row(["the same text", *(f"`{name}`" for name in names)]), "|---" * (len(names) + 1) + "|"]
    for what, methods in same.items():
        lines.append(row([what, *(f"{methods[name]['identical']} of {methods[name]['prompts']}" for name in names)]))
    return [*lines, ""]


def with_interval(result: dict) -> str:
    return f"{result['speedup']:.2f} ({result['speedup_low']:.2f} to {result['speedup_high']:.2f})"


def step_ms(result: dict) -> float:
    return decode_ms(result["runs"]) / sum(run["steps"] for run in result["runs"])
