"""What DISCO's paper reports (Mamou et al., 2024, arXiv 2405.04304)."""

# Table 1, milliseconds a token: the target alone, the best static length, DISCO, the oracle.
LATENCIES = {
    "code, MBPP": (23.21, 14.16, 12.58, 10.18),
    "code, HumanEval": (23.46, 14.42, 12.78, 10.59),
    "summaries, CNN-DM": (38.29, 20.66, 17.85, 15.41),
    "instructions, Alpaca": (47.67, 23.65, 22.49, 20.04),
}
# Table 3, tokens: mean and standard deviation of what the oracle drafts.
ORACLE = {
    "code, MBPP": (18.0, 46.2),
    "code, HumanEval": (14.7, 42.6),
    "summaries, CNN-DM": (3.2, 4.0),
    "instructions, Alpaca": (2.4, 2.1),
}
VICUNA = "paper: Vicuna 13B, 68M"
MODELS = {"code": "paper: StarCoder 15B, 168M", "summaries": VICUNA, "instructions": VICUNA}
F1 = {"MBPP": 0.95, "CNN-DM": 0.88, "Alpaca": 0.77}  # table 5
# Table 2.
SAMPLED = "speedup 1.82 of DISCO, 1.66 of five tokens each time, 1.43 of the best threshold on perplexity"


def ratios(one: int, over: int) -> list[float]:
    return [row[over] / row[one] for row in LATENCIES.values()]


def low_to_high(numbers: list[float]) -> str:
    return f"{min(numbers):.2f} to {max(numbers):.2f}"


OVER_BEST = low_to_high(ratios(2, 1))
OF_ORACLE = low_to_high(ratios(2, 3))


def model_of(name: str) -> str:
    return MODELS[name.split(",")[0]]


def rows() -> list[list[str]]:
    """Of the table of what it comes to."""
    found = []
    for name, (plain, best, disco, oracle) in LATENCIES.items():
        ratios_of = (plain / best, best / disco, best / oracle, oracle / disco)
        speedup, over, of_oracle, part = (f"{x:.2f}" for x in ratios_of)
        found.append([model_of(name), name, speedup, over, "", "", of_oracle, part])
    return found


def oracle_rows() -> list[list[str]]:
    return [[model_of(name), name, f"{mean} (± {spread})", "", "", ""] for name, (mean, spread) in ORACLE.items()]
