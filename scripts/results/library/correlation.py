"""How much two lists of numbers go together."""

from math import sqrt


def pearson(a: list[float], b: list[float]) -> float | None:
    """Nothing, where one of them is always the same."""
    mean_a, mean_b = sum(a) / max(1, len(a)), sum(b) / max(1, len(b))
    products = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    squares = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return products / sqrt(squares) if squares > 0 else None


def spearman(a: list[float], b: list[float]) -> float | None:
    return pearson(ranks(a), ranks(b))


def ranks(values: list[float]) -> list[float]:
    """Equal ones share the mean of theirs."""
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]
