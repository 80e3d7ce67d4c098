"""What tables take from measurements, and how they write it."""

from collections.abc import Callable


def row(cells: list) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def decode_ms(runs: list[dict]) -> float:
    return sum(run["decode_ms"] for run in runs)


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
