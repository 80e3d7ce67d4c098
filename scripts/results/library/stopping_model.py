"""What is computed about rules that end drafts.

Above all what any threshold on chances can reach against an oracle, if the chances are right: drafted
tokens are taken independently of each other, each with the chance that a classifier gives it. A rule goes
on behind a token whose chance is at least a threshold; the oracle behind one that will be taken.
"""

from collections import Counter
from collections.abc import Callable
from statistics import fmean, pstdev

LONGEST = 20
THRESHOLDS = [i / 100 for i in range(5, 100, 5)]
Chances = list[tuple[float, float]]  # (share of the tokens, chance)


def chances_of(test: dict) -> Chances:
    return [(one["tokens"] / test["tokens"], one["said"]) for one in test["bins"] if one["tokens"]]


def of_the_oracle(chances: Chances, draft_ms: float, cost: Callable[[int], float]) -> float:
    """Tokens per second of the best threshold over the oracle's."""
    mean = sum(share * chance for share, chance in chances)
    oracle = rate(goes_on=mean, goes_on_taken=mean, mean=mean, draft_ms=draft_ms, cost=cost)
    rules = []
    for threshold in THRESHOLDS:
        above = [(share, chance) for share, chance in chances if chance >= threshold]
        taken = sum(share * chance for share, chance in above)
        rules.append(rate(sum(share for share, _ in above), taken, mean, draft_ms, cost))
    return max(rules) / oracle


def rate(goes_on: float, goes_on_taken: float, mean: float, draft_ms: float, cost: Callable[[int], float]) -> float:
    """`goes_on`: the chance that a draft goes on behind a token; `goes_on_taken`: and it is taken."""
    n_tokens = 1 + sum(goes_on_taken ** (depth - 1) * mean for depth in range(1, LONGEST + 1))
    ms = 0.0
    for length in range(1, LONGEST + 1):
        ends = 1 if length == LONGEST else 1 - goes_on
        ms += goes_on ** (length - 1) * ends * (length * draft_ms + cost(length + 1))
    return n_tokens / ms


def fastest(times: dict[str, float]) -> float:
    """Of values by what they took."""
    return float(min(times, key=times.__getitem__))


def oracle_lengths(runs: list[dict]) -> list[int]:
    """How many drafted tokens each step took, where drafts ended only behind one that was not taken."""
    return [n for run in runs for n in run["accepted_by_step"]]


def mean_and_deviation(lengths: list[int]) -> tuple[float, float]:
    return (fmean(lengths), pstdev(lengths)) if lengths else (0.0, 0.0)


def shares(lengths: list[int], longest: int) -> list[tuple[int, float]]:
    """(length, share of the steps) from 0 on."""
    counts = Counter(min(n, longest) for n in lengths)
    return [(n, counts[n] / max(1, len(lengths))) for n in range(longest + 1)]


def by_place(runs: list[dict], n_places: int = 10) -> list[tuple[float, float]]:
    """(place in the answer from 0 to 1, mean length there), by tenths of an answer's steps."""
    places: dict[int, list[int]] = {}
    for run in runs:
        lengths = run["accepted_by_step"]
        for i, length in enumerate(lengths):
            places.setdefault(i * n_places // len(lengths), []).append(length)
    return [((place + 0.5) / n_places, fmean(found)) for place, found in sorted(places.items())]
