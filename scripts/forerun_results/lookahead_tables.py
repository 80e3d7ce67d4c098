"""Tables and plots of rules that end drafts."""

from pathlib import Path

from .measured import decode_ms, interval, pass_cost, ratio, row
from .stopping_model import chances_of, of_the_oracle
from .svg import plot


def write_page(output: Path, calibration: dict, trained: dict, tests: dict, speeds: dict, draft_ms: float) -> None:
    lines = [*training_table(trained), *test_table(tests), *limit_table(tests, calibration, draft_ms)]
    for name, methods in speeds.items():
        lines += [f"## {name}", "", *speed_table(name, methods), *loss_table(methods)]
        lines += [f"![lookahead over steps]({name}-steps.svg)", ""]
        (output / f"{name}-steps.svg").write_text(steps_plot(name, methods))
    lines += ["![fixed lengths](lengths.svg)", ""]
    (output / "lengths.svg").write_text(plot("tokens drafted", "speedup", length_lines(speeds)))
    (output / "lookahead.md").write_text("\n".join(lines))


def training_table(trained: dict) -> list[str]:
    lines = ["| classifier | examples | F1 | threshold | longest draft | seconds |", "|---|---|---|---|---|---|"]
    for name, found in trained.items():
        cells = [name, f"{found['examples']:,}", f"{found['f1']:.3f}", f"{found['threshold']:.2f}"]
        lines.append(row([*cells, found["max_tokens"], f"{found['seconds']:.0f}"]))
    return [*lines, ""]


def test_table(tests: dict) -> list[str]:
    sets = list(tests)
    lines = [row(["F1 (calibration error) of", *(f"on {name}" for name in sets)]), "|---" * (len(sets) + 1) + "|"]
    for name, results in tests.items():
        scores = [f"{results[of]['half']['f1']:.3f} ({results[of]['calibration_error']:.3f})" for of in sets]
        lines.append(row([name, *scores]))
    return [*lines, ""]


def limit_table(tests: dict, calibration: dict, draft_ms: float) -> list[str]:
    """What a threshold on chances could reach at most, were they right."""
    lines = [
        "| set | taken | chance from 0.2 to 0.8 | the best threshold, of the oracle's tokens per second |",
        "|---|---|---|---|",
    ]
    for name, results in tests.items():
        test = results[name]
        unsure = sum(one["tokens"] for one in test["bins"][2:8]) / test["tokens"]
        best = of_the_oracle(chances_of(test), draft_ms, pass_cost(calibration))
        lines.append(row([name, f"{100 * test['taken']:.0f} %", f"{100 * unsure:.0f} %", f"{best:.2f}"]))
    return [*lines, ""]


def speed_table(name: str, methods: dict) -> list[str]:
    best = best_fixed(methods)
    head = ["rule", "speedup", f"over `{best}`", "of the oracle's", "accepted", "drafted a step", "tokens per pass", "the same text"]
    lines = [row(head), "|---" * len(head) + "|"]
    for method, runs in methods.items():
        if method == "none" or (method.startswith("fixed") and method not in (best, "fixed 5")):
            continue
        steps, drafted, accepted = (sum(run[key] for run in runs) for key in ("steps", "drafted", "accepted"))
        cells = [
            f"`{method}`" + (" (its own)" if method == f"disco ({name})" else ""),
            interval(methods["none"], runs),
            interval(methods[best], runs),
            f"{ratio(methods['oracle'], runs):.2f}",
            f"{100 * accepted / max(drafted, 1):.0f} %",
            f"{drafted / steps:.2f}",
            f"{(accepted + steps) / steps:.2f}",
            f"{sum(run['identical'] for run in runs)} of {len(runs)}",
        ]
        lines.append(row(cells))
    return [*lines, ""]


def loss_table(methods: dict) -> list[str]:
    """Where rules lose time against the oracle: drafts that are not taken, passes that bring less."""
    head = ["rule", "passes over the oracle's", "drafted in vain, of all drafted", "drafted over the oracle's"]
    lines = [row(head), "|---" * len(head) + "|"]
    totals = {m: {k: sum(run[k] for run in runs) for k in ("steps", "drafted", "accepted")} for m, runs in methods.items()}
    oracle = totals["oracle"]
    for method in (m for m in methods if m in (best_fixed(methods), "cost") or m.startswith("disco")):
        of = totals[method]
        vain = (of["drafted"] - of["accepted"]) / max(of["drafted"], 1)
        lines.append(
            row([f"`{method}`", f"{of['steps'] / oracle['steps']:.2f}", f"{100 * vain:.0f} %", f"{of['drafted'] / oracle['drafted']:.2f}"])
        )
    return [*lines, ""]


def best_fixed(methods: dict) -> str:
    fixed = [method for method in methods if method.startswith("fixed")]
    return min(fixed, key=lambda method: decode_ms(methods[method]))


def length_lines(speeds: dict) -> dict:
    lines = {}
    for name, methods in speeds.items():
        fixed = {int(method.split()[1]): runs for method, runs in methods.items() if method.startswith("fixed")}
        lines[name] = [(length, ratio(methods["none"], runs)) for length, runs in sorted(fixed.items())]
    return lines


def steps_plot(name: str, methods: dict) -> str:
    """How far each step of the longest answer drafted, by rule."""
    chosen = {method: methods[method] for method in (best_fixed(methods), f"disco ({name})", "cost", "oracle")}
    longest = max(range(len(methods["none"])), key=lambda i: len(methods["oracle"][i]["drafted_by_step"]))
    lines = {method: list(enumerate(runs[longest]["drafted_by_step"], 1)) for method, runs in chosen.items()}
    return plot("step", "tokens drafted", lines)
