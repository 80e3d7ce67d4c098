"""What the files of the comparison of rules that end drafts hold."""

from collections import defaultdict
from dataclasses import dataclass, field

from .measured import decode_ms, ratio
from .stopping_settings import disco

Runs = list[dict]
Rules = dict[str, Runs]  # by rule, a run for each prompt


@dataclass
class Measured:
    """What the files hold, by comparison and set; whatever is missing is left out."""

    speeds: dict[str, dict[str, Rules]] = field(default_factory=lambda: defaultdict(dict))
    draft_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by comparison
    trained: dict[str, dict[str, dict]] = field(default_factory=lambda: defaultdict(dict))
    tunings: dict[str, dict[str, dict]] = field(default_factory=lambda: defaultdict(dict))
    tests: dict[tuple, dict] = field(default_factory=dict)  # by comparison, whose classifier, of which set, on which
    calibrations: dict[str, dict] = field(default_factory=dict)  # by model


def read(files: dict[str, dict]) -> Measured:
    found = Measured()
    for file in files.values():
        identity = file["identity"]
        c, name = identity.get("comparison", ""), identity.get("set", "")
        match identity["what"]:
            case "calibration":
                found.calibrations[identity["model"]] = file
            case "train":
                found.trained[c][name] = file
            case "tune":
                found.tunings[c][name] = file
            case "test":
                found.tests[c, identity["classifier"], identity["trained_on"], name] = file
            case "speed":
                rules = found.speeds[c].setdefault(name, {})
                for label, runs in file["methods"].items():
                    rules[label] = rules.get(label, []) + runs
                found.draft_ms[c] += [file["draft_ms"]] if file["draft_ms"] else []
    return found


def best_fixed(rules: Rules) -> str:
    return min((label for label in rules if label.startswith("fixed")), key=lambda label: decode_ms(rules[label]))


def greedy_sets(speeds: dict[str, dict[str, Rules]]) -> list[tuple[str, Rules]]:
    """By name, those of greedy answers whose own classifier was measured."""
    return [(name, rules) for c in ("q8", "q4") for name, rules in speeds.get(c, {}).items() if disco(name) in rules]


def over_best_fixed(sets: list[tuple[str, Rules]]) -> list[float]:
    """How many times as fast as the best fixed length each set's own classifier is."""
    return [ratio(rules[best_fixed(rules)], rules[disco(name)]) for name, rules in sets]
