"""Tables of DISCO's classifiers: how they were made, how well they know, and what they could reach."""

from . import stopping_paper as paper
from .markdown import paragraph, section, table
from .measured import pass_cost, ratio
from .stopping_files import Measured
from .stopping_model import chances_of, of_the_oracle
from .stopping_settings import COMPARISONS, disco

CLASSIFIERS = "## Classifiers"
TESTS = "## How well classifiers know"
LIMIT = "## What any threshold could reach"
SECTIONS = [CLASSIFIERS, TESTS, LIMIT]


def sections(found: Measured) -> list[str]:
    return [
        *section(CLASSIFIERS, classifier_text(), training_table(found.trained)),
        *section(TESTS, test_text(), test_table(found)),
        *section(LIMIT, limit_text(), limit_table(found)),
    ]


def classifier_text() -> list[str]:
    reported = ", ".join(f"{f1:.2f} on {name}" for name, f1 in paper.F1.items())
    return paragraph(
        "Made by `forerun disco train`. F1 is of validation prompts, at a chance of 0.5; the paper reports",
        f"{reported}. Threshold and longest draft are those that answered validation prompts fastest, at the",
        "temperature that the classifier is for.",
    )


def test_text() -> list[str]:
    return paragraph(
        "F1 at a chance of 0.5 on the prompts for speeds, of the classifier of each set on every set, and in brackets",
        "the calibration error: how far its chances are from the share that is taken, in the mean.",
    )


def limit_text() -> list[str]:
    return paragraph(
        "Computed: from the chances that the classifier gives to the drafted tokens of its own set, the measured time",
        "of a draft step and the measured costs of passes. If tokens were taken with exactly these chances, the best",
        "threshold on them would reach this part of the oracle's speed; what the oracle has beyond that is luck told",
        "beforehand.",
    )


def training_table(trained: dict[str, dict[str, dict]]) -> list[str]:
    rows = [
        [c.title, of, f"{found['examples']:,}", f"{found['f1']:.3f}", f"{found['threshold']:.2f}", found["max_tokens"],
         f"{found['seconds']:.0f}"]
        for name, c in COMPARISONS.items() for of, found in trained[name].items()
    ]  # fmt: skip
    return table(["model", "set", "examples", "F1", "threshold", "longest draft", "seconds"], rows)


def score(test: dict | None) -> str:
    return f"{test['half']['f1']:.3f} ({test['calibration_error']:.3f})" if test else ""


def test_table(found: Measured) -> list[str]:
    rows = []
    sets = list(dict.fromkeys(key[3] for key in found.tests))
    for name, c in COMPARISONS.items():
        if not c.greedy:
            for of in dict.fromkeys(key[2] for key in found.tests if key[0] == name):
                rows.append([c.title, of, *(score(found.tests.get((name, name, of, on))) for on in sets)])
    return table(["model", "classifier of", *(f"on {name}" for name in sets)], rows)


def sampled_tests(found: Measured) -> list[str]:
    """What training for a temperature changes of what a classifier knows there."""
    c = COMPARISONS["sampled"]
    rows = []
    for of in dict.fromkeys(key[3] for key in found.tests if key[0] == c.name):
        own, greedy = (found.tests.get((c.name, by, of, of)) for by in (c.name, c.greedy))
        if own and greedy:
            rows.append([of, f"{100 * own['taken']:.0f} %", score(own), score(greedy)])
    text = paragraph(
        "What classifiers know of tokens drawn at this temperature: F1 and calibration error, where a token counts by",
        "its chance of being taken.",
    )
    body = table(["set", "taken", "trained at this temperature", "trained greedily"], rows)
    return [*text, *body] if body else []


def limit_table(found: Measured) -> list[str]:
    rows = []
    for name, c in COMPARISONS.items():
        calibration, draft_ms = found.calibrations.get(c.model), found.draft_ms.get(name)
        for of, rules in found.speeds[name].items():
            test = found.tests.get((name, name, of, of))
            if not (test and calibration and draft_ms):
                continue
            unsure = sum(one["tokens"] for one in test["bins"][2:8]) / test["tokens"]
            best = of_the_oracle(chances_of(test), min(draft_ms), pass_cost(calibration))
            measured = ratio(rules["oracle"], rules[disco(of)])
            cells = [f"{100 * test['taken']:.0f} %", f"{100 * unsure:.0f} %", f"{best:.2f}", f"{measured:.2f}"]
            rows.append([c.title, of, *cells])
    titles = ["model", "set", "taken", "chance from 0.2 to 0.8", "the best threshold, of the oracle's speed",
              "DISCO, measured"]  # fmt: skip
    return table(titles, rows)
