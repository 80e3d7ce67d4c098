"""Tables and plots of rules that end drafts."""

from . import stopping_classifiers as classifiers
from . import stopping_paper as paper
from .markdown import paragraph, picture, section, table
from .measured import interval, low_to_high, ratio
from .page import Written, how_measured, span
from .stopping_files import Measured, Rules, Runs, best_fixed, greedy_sets, over_best_fixed, read
from .stopping_model import by_place, fastest, mean_and_deviation, oracle_lengths, shares
from .stopping_settings import (
    COMPARISONS, DEFAULTS, LENGTHS, LONGEST, MODELS, TEMPERATURE, TRIED, USUAL, Comparison, disco, tuned,
)  # fmt: skip
from .svg import plot

PAGE = "stopping"
SUMMARY = "## What it comes to"
ORACLE = "## How long the oracle's drafts are"
TUNED = "## Thresholds chosen on validation prompts"
SAMPLED = f"## At temperature {TEMPERATURE}"
FIXED = "## Fixed lengths"
SPEEDS = {
    "q8": f"## All rules: {MODELS['smollm2-q8']}",
    "q4": f"## Some rules: {MODELS['smollm2']}",
    "sampled": SAMPLED,
}
SECTIONS = [SUMMARY, ORACLE, FIXED, TUNED, *SPEEDS.values(), *classifiers.SECTIONS]

LAST_SHOWN = 20  # tokens of a draft in the plot of lengths


def page(files: dict[str, dict]) -> Written:
    found = read(files)
    plots: dict[str, str] = {}
    lines = [*head(files), *section(SUMMARY, summary_text(found.speeds), summary_table(found.speeds))]
    lines += oracle_section(found.speeds, plots)
    lines += fixed_section(found.speeds, plots)
    lines += section(TUNED, tuning_text(found.tunings), tuning_table(found))
    for name, title in SPEEDS.items():
        lines += speed_section(title, COMPARISONS[name], found.speeds[name], plots)
        if name == "sampled":
            lines += classifiers.sampled_tests(found)
    return Written([*lines, *classifiers.sections(found)], plots)


# ---- Words ----


def head(files: dict[str, dict]) -> list[str]:
    speeds = [file for file in files.values() if file["identity"]["what"] == "speed"]
    lines = ["# When to stop drafting, measured", "", *how_measured(PAGE, files.values())]
    if not speeds:
        return lines
    uses = [{"identity": file["identity"]["uses"]} for file in speeds]
    sets = {file["identity"]["set"]: file["identity"]["of"] for file in speeds}
    return [
        *lines,
        "The comparison of DISCO's paper (Mamou et al., 2024, arXiv 2405.04304) with models of ours: a draft ends",
        f"where a rule says so, here drafts of `models/smollm2-draft.gguf` for {' and '.join(MODELS.values())}. The",
        "rules are explained in [speculation.md](../speculation.md#when-to-stop). Answers are greedy and have up to",
        f"{span(speeds, 'tokens')} tokens, unless a section says otherwise. Sets of prompts:",
        f"{'; '.join(f'*{name}*, {of}' for name, of in sets.items())}.",
        f"Of each, {span(uses, 'test')} are for speeds, {span(uses, 'validation')} validate, and classifiers are",
        f"trained on {span(uses, 'training')} others; the paper has 80, 80 and 374 to 500.",
        "",
        f"Commands that measure the speeds of a set: {span(speeds, 'parts')}. In each, rules take turns prompt by prompt.",
        "`cost` begins with what it learnt on the validation prompts, `adaptive` and `roc` with their defaults. (Where",
        "nothing is known of a draft model, `cost` lets it draft little at first.) *Speedup* is the decode time of",
        "plain decoding over the rule's, which has all that the draft model does, reading the prompt too; in brackets",
        "where 95 % of resampled sets of prompts lie. *Best fixed* is the length that turned out best on these very",
        "prompts: what a user would choose who knew how it ends. (The paper's was chosen on validation prompts.)",
        f"Drafts of all other rules have at most {LONGEST} tokens, but for the oracle's, which have no limit, and",
        "DISCO's, whose limit is chosen with its threshold.",
        "",
    ]


def summary_text(speeds: dict[str, dict[str, Rules]]) -> list[str]:
    greedy = greedy_sets(speeds)
    if not greedy:
        return []
    over = over_best_fixed(greedy)
    of_oracle = [ratio(rules["oracle"], rules[disco(name)]) for name, rules in greedy]
    cost = [ratio(rules[disco(name)], rules["cost"]) for name, rules in greedy]
    drafted = [run for of in speeds.values() for rules in of.values() for label in rules if label != "none"
               for run in rules[label]]  # fmt: skip
    n_same = sum(run["identical"] for run in drafted)
    return paragraph(
        f"Greedily, DISCO's classifier is {low_to_high(over)} times as fast as the best fixed length (in the paper",
        f"{paper.OVER_BEST}), and reaches {low_to_high(of_oracle)} of the oracle's speed (in the paper",
        f"{paper.OF_ORACLE}). `cost`, which is not trained beforehand but learns while it drafts, is",
        f"{low_to_high(cost)} times as fast as the classifier.",
        f"{n_same:,} of {len(drafted):,} texts of all rules are plain decoding's, token for token.",
    )


def tuning_text(tunings: dict[str, dict[str, dict]]) -> list[str]:
    n_timed = sorted({tuning["n_timed"] for of in tunings.values() for tuning in of.values()})
    tried = "; ".join(f"`{rule}` {', '.join(map(str, values))}" for rule, values in TRIED.items())
    return paragraph(
        "As DISCO's threshold is chosen by time on validation prompts, so are here those of the rules that have",
        f"nothing but a threshold, on {' or '.join(map(str, n_timed))} of these prompts: {tried}.",
        "(Of DISCO, seven thresholds and three lengths are timed by `forerun disco train`, in rounds that drop the",
        "slower half.) *Validation*: the speedup there with the default and with the chosen value. The other speedups",
        "are of the prompts for speeds.",
    )


# ---- Tables ----


def summary_table(speeds: dict[str, dict[str, Rules]]) -> list[str]:
    rows = []
    for name, c in COMPARISONS.items():
        for of, rules in speeds.get(name, {}).items():
            best = best_fixed(rules)
            cells = [interval(rules[best], rules[label]) if label in rules else ""
                     for label in (disco(of), tuned("confidence"), "cost", "oracle")]  # fmt: skip
            part = ratio(rules["oracle"], rules[disco(of)])
            rows.append([c.title, of, f"`{best}` {ratio(rules['none'], rules[best]):.2f}", *cells, f"{part:.2f}"])
    rows += paper.rows() if rows else []
    head = ["model", "set", "best fixed, speedup", "DISCO over it", "tuned `confidence` over it", "`cost` over it",
            "oracle over it", "DISCO, of the oracle's speed"]  # fmt: skip
    return table(head, rows)


def oracle_section(speeds: dict[str, dict[str, Rules]], plots: dict[str, str]) -> list[str]:
    rows, lengths, places = [], {}, {}
    for name, c in COMPARISONS.items():
        for of, rules in speeds.get(name, {}).items():
            taken = oracle_lengths(rules["oracle"])
            mean, deviation = mean_and_deviation(taken)
            longest = max(taken, default=0)
            none = sum(n == 0 for n in taken) / max(1, len(taken))
            cells = [f"{mean:.1f} (± {deviation:.1f})", f"{100 * none:.0f} %", longest, f"{len(taken):,}"]
            rows.append([c.title, of, *cells])
            if name == "q8":
                lengths[of] = shares(taken, LAST_SHOWN)
                places[of] = by_place(rules["oracle"])
    rows += paper.oracle_rows() if rows else []
    if lengths:
        plots["oracle-lengths"] = plot("tokens taken", "share of the steps", lengths)
        plots["oracle-places"] = plot("place in the answer", "mean of tokens taken", places)
    text = paragraph(
        "Tokens that a step takes of a draft that ends only behind the first that is not taken: mean and standard",
        "deviation, as in the paper's table 3. Where an answer ends, drafts do too, and answers are short here. The",
        "larger the deviation, the more a rule can gain that knows when to stop.",
    )
    pictures = [
        *picture(PAGE, "oracle-lengths", f"share of the steps by tokens taken, {LAST_SHOWN} or more as {LAST_SHOWN}"),
        *picture(PAGE, "oracle-places", "mean of tokens taken by the place in the answer"),
    ]
    titles = ["model", "set", "mean (± deviation)", "steps that take none", "longest", "steps"]
    return section(ORACLE, text, [*table(titles, rows), *(pictures if lengths else [])] if rows else [])


def fixed_section(speeds: dict[str, dict[str, Rules]], plots: dict[str, str]) -> list[str]:
    rows, lines = [], {}
    for name, c in COMPARISONS.items():
        for of, rules in speeds.get(name, {}).items():
            by_length = {n: ratio(rules["none"], rules[f"fixed {n}"]) for n in c.lengths if f"fixed {n}" in rules}
            rows.append([c.title, of, *(f"{by_length[n]:.2f}" if n in by_length else "" for n in LENGTHS)])
            if name == "q8":
                lines[of] = sorted(by_length.items())
    shown = picture(PAGE, "lengths", f"speedup by tokens drafted, {MODELS['smollm2-q8']}") if lines else []
    if lines:
        plots["lengths"] = plot("tokens drafted", "speedup", lines)
    titles = ["model", "set", *(str(n) for n in LENGTHS)]
    text = paragraph("Speedup by the number of tokens that every draft has.")
    return section(FIXED, text, [*table(titles, rows), *shown] if rows else [])


def tuning_table(found: Measured) -> list[str]:
    rows = []
    for name, c in COMPARISONS.items():
        for of, tuning in found.tunings[name].items():
            rules = found.speeds[name].get(of, {})
            for rule, times in tuning["rules"].items():
                value, default = fastest(times), DEFAULTS[rule]
                before, after = (tuning["none"] / times[str(v)] for v in (default, value))
                tested = [f"{ratio(rules['none'], rules[label]):.2f}" if label in rules else ""
                          for label in (rule, tuned(rule), disco(of))]  # fmt: skip
                over = interval(rules[disco(of)], rules[tuned(rule)]) if tuned(rule) in rules else ""
                rows.append([c.title, of, f"`{rule}`", default, value, f"{before:.2f}, {after:.2f}", *tested, over])
    titles = ["model", "set", "rule", "default", "chosen", "validation", "with the default", "with the chosen", "DISCO",
              "chosen over DISCO"]  # fmt: skip
    return table(titles, rows)


def speed_section(title: str, c: Comparison, speeds: dict[str, Rules], plots: dict[str, str]) -> list[str]:
    if not speeds:
        return []
    lines = [title, "", *(sampled_text() if c.temperature else [])]
    for of, rules in speeds.items():
        lines += [f"### {c.title}: {of}", "", *speed_table(of, rules), *loss_table(rules)]
        if c.name == "q8":
            plots[f"steps-{of}"] = steps_plot(of, rules)
            lines += picture(PAGE, f"steps-{of}", f"tokens drafted at each step of the longest answer, {of}")
    return lines


def sampled_text() -> list[str]:
    return paragraph(
        "Answers and drafts are drawn with the same noise, and texts are plain decoding's, as always (`--accept",
        "match`). A drafted token is taken if it is the token that the model draws, so what classifiers learn is the",
        "chance of that. (The paper trains by the total variation distance, which is about speculative sampling, where",
        "the chance is higher.) `disco (…, greedy)` was trained on greedy answers. The paper's only numbers of this",
        f"kind are of CNN-DM at temperature 1: {paper.SAMPLED}.",
    )


def speed_table(of: str, rules: Rules) -> list[str]:
    best = best_fixed(rules)
    rows = []
    for label, runs in rules.items():
        if label == "none" or (label.startswith("fixed") and label not in (best, f"fixed {USUAL}")):
            continue
        steps, drafted, accepted = totals(runs).values()
        rows.append([
            f"`{label}`" + (" (its own)" if label == disco(of) else ""),
            interval(rules["none"], runs),
            interval(rules[best], runs),
            f"{ratio(rules['oracle'], runs):.2f}",
            f"{100 * accepted / max(drafted, 1):.0f} %",
            f"{drafted / max(steps, 1):.2f}",
            f"{(accepted + steps) / max(steps, 1):.2f}",
            f"{sum(run['identical'] for run in runs)} of {len(runs)}",
        ])  # fmt: skip
    titles = ["rule", "speedup", f"over `{best}`", "of the oracle's", "accepted", "drafted a step", "tokens per pass",
              "the same text"]  # fmt: skip
    return table(titles, rows)


def totals(runs: Runs) -> dict[str, int]:
    return {key: sum(run[key] for run in runs) for key in ("steps", "drafted", "accepted")}


def loss_table(rules: Rules) -> list[str]:
    """Where rules lose time against the oracle: drafts that are not taken, passes that bring less."""
    oracle = totals(rules["oracle"])
    rows = []
    for label in (m for m in rules if m in (best_fixed(rules), tuned("confidence"), "cost") or m.startswith("disco")):
        of = totals(rules[label])
        vain = (of["drafted"] - of["accepted"]) / max(of["drafted"], 1)
        passes, drafted = of["steps"] / max(oracle["steps"], 1), of["drafted"] / max(oracle["drafted"], 1)
        rows.append([f"`{label}`", f"{passes:.2f}", f"{100 * vain:.0f} %", f"{drafted:.2f}"])
    titles = ["rule", "passes over the oracle's", "drafted in vain, of all drafted", "drafted over the oracle's"]
    return table(titles, rows)


def steps_plot(of: str, rules: Rules) -> str:
    """How far each step of the longest answer drafted, by rule."""
    longest = max(range(len(rules["none"])), key=lambda i: len(rules["oracle"][i]["drafted_by_step"]))
    best = best_fixed(rules)
    drafted = {best: [int(best.split()[1])] * rules[best][longest]["steps"]}
    drafted |= {label: rules[label][longest]["drafted_by_step"] for label in (disco(of), "cost", "oracle")}
    lines = {label: list(enumerate(steps, 1)) for label, steps in drafted.items() if steps}
    return plot("step", "tokens drafted", lines)
