"""Sections about the model as its own drafter: speeds, methods as published, parts and options of two of them."""

from dataclasses import dataclass

from .layers_settings import ABLATION, INTERVALS, PUBLISHED, SHARES, SKIPS, THRESHOLDS
from .markdown import items, picture, prose, section, table
from .measured import Methods, decode_ms, draft_step_ms, interval, pass_cost, same_text, speed, speed_interval
from .page import Written
from .svg import Lines, plot

SPEED = "## Speed"
AS_PUBLISHED = "## As published"
PARTS = "## What the parts of SWIFT bring"
SKIP = "## How much SWIFT leaves out"
THRESHOLD = "## KnapSpec: when a draft ends"
INTERVAL = "## KnapSpec: how often layers are chosen"
CAP = "## KnapSpec: how much may be left out"

MEASURES = ["speedup", "accepted", "tokens per pass", "drafting", "the same text"]
# SWIFT's table 8, LLaMA-2-13B on CNN/DM: speedup, accepted of draft steps, tokens per pass.
PAPERS_PARTS = {
    "SWIFT as published": ("1.56", "98 %", "5.82"),
    "without early stopping": ("0.90", "43 %", "11.16"),
    "without dynamic verification": ("1.34", "90 %", "4.39"),
    "without optimisation": ("1.22", "90 %", "2.15"),
}


def methods_of(files: dict[str, dict], name: str) -> Methods:
    return files.get(name, {}).get("methods", {})


def drafting(methods: Methods) -> list[str]:
    return [name for name in methods if name != "none"]


def accepted(result: dict) -> str:
    return f"{100 * result['accept_rate']:.0f} %" if result["drafted"] else ""


def measures(methods: Methods, name: str) -> list[str]:
    """The cells of MEASURES."""
    result = methods[name]
    return [
        speed_interval(methods, name),
        accepted(result),
        f"{result['tokens_per_step']:.2f}",
        f"{100 * result['draft_share']:.0f} %",
        same_text(result),
    ]


def code(name: str) -> str:
    return f"`{name}`"


# ---- Speed ----


def speed_section(files: dict[str, dict]) -> Written:
    methods = methods_of(files, "speeds")
    text = prose(
        """Every method with forerun's own settings; `selfsd` with layers that `forerun layers search` found
        beforehand. *Draft step*: what a drafted token took, choosing layers included, over a plain step. *Ceiling*:
        the speed of chains of the best length at the agreement and the draft step that were measured, and the
        measured costs of passes of several rows."""
    )
    lines = section(SPEED, text, speed_table(methods, files.get("calibration")))
    return Written([*lines, *mixed_tree(methods)] if lines else [])


def speed_table(methods: Methods, calibration: dict | None) -> list[str]:
    rows = [[code(name), *speed_cells(methods, name, calibration)] for name in drafting(methods)]
    head = ["method", "speedup", "ceiling", "accepted", "draft step", "tokens per pass", "the same text"]
    return table(head, rows)


def speed_cells(methods: Methods, name: str, calibration: dict | None) -> list[str]:
    result = methods[name]
    plain = methods["none"]["runs"]
    plain_step = decode_ms(plain) / max(1, sum(run["steps"] for run in plain))
    of_model = result["by_source"].get("layers", {})
    is_chain = list(result["by_source"]) == ["layers"] and result["drafted"] > 0
    step = draft_step_ms(result) / plain_step if is_chain else None
    agreement = of_model["accepted"] / of_model["tested"] if of_model.get("tested") else 0.0
    return [
        speed_interval(methods, name),
        f"{ceiling(agreement, step, calibration):.2f}" if step is not None and calibration else "",
        accepted(result),
        f"{step:.2f}" if step is not None else "",
        f"{result['tokens_per_step']:.2f}",
        same_text(result),
    ]


def ceiling(agreement: float, draft_step: float, calibration: dict) -> float:
    """The speed of chains of the best length, were the model's other costs as measured."""
    cost = pass_cost(calibration)
    best, expected, chance = 0.0, 1.0, 1.0
    for n in range(26):
        best = max(best, expected / (n * draft_step + cost(n + 1) / cost(1)))
        chance *= agreement
        expected += chance
    return best


def mixed_tree(methods: Methods) -> list[str]:
    """Whether drafts from both are better than the better of the two."""
    parts = ["knapspec", "auto:layers=none"]
    if not {"auto", *parts} <= methods.keys():
        return []
    better = min(parts, key=lambda name: decode_ms(methods[name]["runs"]))
    ratio = interval(methods[better]["runs"], methods["auto"]["runs"])
    return prose(
        f"""`auto`, which drafts from texts and with the model, is {ratio} times as fast as the better of the two
        alone, `{better}`."""
    )


# ---- As published ----

DIFFERENCES = [
    """**SWIFT** (`search=published`, `share=1`): evenly spread layers until an answer has 33 tokens, then a
    candidate at every step, 45 % of the blocks, every 25th from a Gaussian process, until one agrees in 95 % or
    300 were no better; 25 tokens at most, an end behind one below 0.8, siblings by confidence. The paper says that
    candidates are tried on the latest tokens, as here; its program uses an answer's first. Less is left out (40 %)
    where fewer than 70 % of the drafted tokens are taken, as in its footnote.""",
    """**Self-SD** (Draft & Verify): a Gaussian process over all blocks, by measured time (of answers, without
    reading prompts), 12 tokens, a threshold that begins at 0.8 and adapts.""",
    """**KnapSpec**: all branches over the tokens of five verifications every 64 steps, half of the weight at most,
    cosine 0.5, no further check (`check=0`), 10 tokens, an end behind one below 0.7 (`adapt=false`). Verification
    costs what passes of so many rows were measured to cost, where the paper takes that of one row; agreement on
    few tokens is shrunk, (n + 1) / (m + 2); where leaving nothing out is best, it does not draft; layers stay from
    answer to answer. All branches together are a pass of very many rows, which costs little on the paper's GPUs
    and much on a CPU: hence the row with a quick look.""",
    """**CLaSp**: a quarter of the layers, chosen on the latest token after every verification (in the public
    program every 64 steps), 10 tokens, an end behind one below 0.7.""",
    """**DEL**: what every layer would say is compared with every token of the text, counts fade by 0.95. Not as
    published: what a draft computed is computed again by the verification, and a prompt's last 32 tokens do not
    count. The paper is about models that were trained to be left early.""",
]


def published_section(files: dict[str, dict]) -> Written:
    swift = methods_of(files, "swift-ablation")
    shown = {name: swift[name] for name in ("none", "SWIFT as published", "`swift`") if name in swift}
    groups = [shown, *(methods_of(files, name) for name in PUBLISHED)]
    rows = [[name, *measures(methods, name)] for methods in groups for name in drafting(methods)]
    text = prose("Each paper's own settings (`--tree own`), and ours of the same run below them.")
    details = [*items(*DIFFERENCES), *cut_short(files)]
    return Written(section(AS_PUBLISHED, text, details, table(["method", *MEASURES], rows)))


def cut_short(files: dict[str, dict]) -> list[str]:
    found = files.get("search-draft-verify-as-published", {}).get("found")
    if not found:
        return []
    n_sets, n_texts, best = found["candidates"], found["texts"], found["best_so_far"][-1]
    words = [f"Cut short: Draft & Verify tries 1,000 sets on 8 prompts, here it was {n_sets} sets on {n_texts}."]
    if not found["skipped"]:
        words.append(
            f"""None of them was faster than plain decoding (the best: {best:.2f}), and forerun keeps none that is
            not, so nothing is drafted in its row; its authors would draft with the best all the same."""
        )
    return prose(*words)


# ---- Parts and options ----


def parts_section(files: dict[str, dict]) -> Written:
    methods = methods_of(files, "swift-ablation")
    text = prose(
        """As in the paper's table 8, whose numbers (LLaMA-2-13B, CNN/DM) stand beside ours: *early stopping* ends a
        draft behind a token below 0.8, *dynamic verification* adds the next likeliest tokens beside each,
        *optimisation* is the search; without it the evenly spread layers stay. With siblings, *accepted* counts
        those that lose, too, where the paper counts draft steps; a tree has 128 tokens at most. Our search begins
        with a quick knapsack, tries small changes of the best set, and leaves out as much as pays."""
    )
    papers = {name: PAPERS_PARTS.get(name, ("", "", "")) for name in ABLATION}
    rows = [[name, *measures(methods, name), *papers[name]] for name in ABLATION if name in methods]
    head = ["SWIFT", *MEASURES, "the paper's speedup", "its accepted", "its tokens per pass"]
    return Written(section(PARTS, text, table(head, rows)))


def sweep_rows(methods: Methods, values: tuple) -> list[list[str]]:
    return [[str(value), *measures(methods, str(value))] for value in values if str(value) in methods]


def sweep_lines(methods: Methods, values: tuple, before: str = "") -> Lines:
    """Speed and the share that is accepted, by the option's value."""
    there = [value for value in values if str(value) in methods]
    return {
        f"{before}speedup": [(value, speed(methods, str(value))) for value in there],
        f"{before}share accepted": [(value, methods[str(value)]["accept_rate"]) for value in there],
    }


def skip_section(files: dict[str, dict]) -> Written:
    kinds = {kind: methods_of(files, f"skip-{kind}") for kind in ("searched", "even")}
    kinds = {kind: methods for kind, methods in kinds.items() if methods}
    rows = [[kind, *cells] for kind, methods in kinds.items() for cells in sweep_rows(methods, SKIPS)]
    text = prose(
        """SWIFT as published with other shares of the blocks (`skip`, which stays: `adapt=false`), and the even set
        that it begins with, for which there is no search. Both draft siblings. The paper leaves out 0.45 of a 13B
        model and 0.5 of larger ones, and finds that the best share grows with the size of the model."""
    )
    lines = section(SKIP, text, table(["layers", "share left out", *MEASURES], rows))
    if not lines:
        return Written([])
    curves: Lines = {}
    for kind, methods in kinds.items():
        curves |= sweep_lines(methods, SKIPS, f"{kind}: ")
    drawn = plot("share of the blocks left out", "speedup, share accepted", curves)
    return Written([*lines, *picture("layers", "skip", "speed by the share left out")], {"skip": drawn})


@dataclass(frozen=True)
class Sweep:
    """An option of KnapSpec, all else as published."""

    heading: str
    values: tuple
    what: str
    text: str
    log_x: bool = False


SWEEPS = {
    "threshold": Sweep(
        THRESHOLD, THRESHOLDS, "probability below which a draft ends",
        "As published but for the probability behind which a draft ends, where the paper has 0.7.",
    ),
    "interval": Sweep(
        INTERVAL, INTERVALS, "steps between two choices",
        """Few prompts and long answers, so that layers are chosen several times. The paper finds 64 best: choosing
        takes 40.9 % of the time with 4 and 7.5 % with 64, and with more the choice becomes stale (its figure 6).""",
        log_x=True,
    ),
    "cap": Sweep(
        CAP, SHARES, "share of the weight that may be left out",
        "The authors let half of the weight of all blocks go at most; ours may leave out as much as pays.",
    ),
}  # fmt: skip


def sweep_section(files: dict[str, dict], option: str) -> Written:
    sweep = SWEEPS[option]
    methods = methods_of(files, f"knapspec-{option}")
    quick = "The programme has 8 branches of 4 tokens, so that looking costs little; all else is as published."
    rows = sweep_rows(methods, sweep.values)
    lines = section(sweep.heading, prose(sweep.text, quick), table([code(option), *MEASURES], rows))
    if not lines:
        return Written([])
    best = max((v for v in sweep.values if str(v) in methods), key=lambda value: speed(methods, str(value)))
    lines += prose(f"The fastest of them here, on {methods['none']['prompts']} prompts: {best}.")
    drawn = plot(sweep.what, "speedup, share accepted", sweep_lines(methods, sweep.values), log_x=sweep.log_x)
    return Written([*lines, *picture("layers", option, f"speed by {sweep.what}")], {option: drawn})
