"""What tables take from measurements."""

import random
from collections.abc import Callable

N_RESAMPLES = 2000


# Of one run of `bench spec`: what it says of each method, by the method's name.
Methods = dict[str, dict]


def decode_ms(runs: list[dict]) -> float:
    return sum(run["decode_ms"] for run in runs)


def ratio(slow: list[dict], fast: list[dict]) -> float:
    return decode_ms(slow) / decode_ms(fast)


def interval(slow: list[dict], fast: list[dict]) -> str:
    """How many times as fast, and where 95 % of resampled sets of prompts lie."""
    pairs = list(zip(slow, fast))
    source = random.Random(1)
    ratios = []
    for _ in range(N_RESAMPLES):
        chosen = source.choices(pairs, k=len(pairs))
        ratios.append(decode_ms([a for a, _ in chosen]) / decode_ms([b for _, b in chosen]))
    ratios.sort()
    low, high = ratios[int(0.025 * N_RESAMPLES)], ratios[int(0.975 * N_RESAMPLES)]
    return f"{ratio(slow, fast):.2f} ({low:.2f} to {high:.2f})"


def low_to_high(numbers: list[float]) -> str:
    low, high = f"{min(numbers):.2f}", f"{max(numbers):.2f}"
    return low if low == high else f"{low} to {high}"


def runs_of(result: dict, category: str | None = None) -> list[dict]:
    return [run for run in result["runs"] if category in (None, run["category"])]


def speed(methods: Methods, name: str, category: str | None = None) -> float:
    """Decode time of plain decoding over the method's."""
    return ratio(runs_of(methods["none"], category), runs_of(methods[name], category))


def speed_interval(methods: Methods, name: str) -> str:
    return interval(methods["none"]["runs"], methods[name]["runs"])


def categories_of(methods: Methods) -> list[str]:
    return list(dict.fromkeys(run["category"] for run in methods["none"]["runs"]))


def same_text(result: dict) -> str:
    return f"{result['identical']} of {result['prompts']}"


def draft_step_ms(result: dict) -> float:
    """What drafting a token takes. Reading prompts with a draft model counts as drafting too."""
    return result["draft_share"] * decode_ms(result["runs"]) / result["drafted"]


def pass_cost(calibration: dict) -> Callable[[int], float]:
    """Milliseconds by number of rows."""
    points = {point["rows"]: point["ms"] for point in calibration["points"]}

    def cost(n_rows: int) -> float:
        low = max(n for n in points if n <= n_rows)
        high = min((n for n in points if n >= n_rows), default=low)
        if high == low:
            return points[low]
        return points[low] + (points[high] - points[low]) * (n_rows - low) / (high - low)

    return cost
