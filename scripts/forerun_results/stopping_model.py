"""What any threshold on chances can reach against an oracle, if the chances are right.

Drafted tokens are taken independently of each other, each with the chance that a classifier gives
it. A rule goes on behind a token whose chance is at least a threshold; the oracle behind one that
will be taken.
"""

from collections.abc import Callable

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
