"""The table of forerun bench engine's measurements."""

from forerun_results.measured import row


def table(measured: dict[str, dict]) -> str:
    """Milliseconds, and libllama's time over ours in brackets. `measured`: by name of the row."""
    counts = sorted({pass_["n"] for result in measured.values() for pass_ in result["rows"]})
    columns = ["model", "kernels", "decode", *counts, "prompt", "8 of 1"]
    lines = [row(columns), row(["---"] * len(columns))]
    for name, result in measured.items():
        passes = {pass_["n"]: pass_ for pass_ in result["rows"]}
        lines.append(
            row(
                [
                    name,
                    result.get("kernels", "ggml"),
                    cell(result["decode"]),
                    *(cell(passes[n]) if n in passes else "" for n in counts),
                    cell(result["prefill"]),
                    f"{passes[8]['forerun_ms'] / passes[1]['forerun_ms']:.2f}" if {1, 8} <= passes.keys() else "",
                ]
            )
        )
    return "\n".join(lines) + "\n"


def cell(measurement: dict) -> str:
    ours = measurement["forerun_ms"]
    return f"{ours:.{0 if ours >= 100 else 1}f} ({measurement['ratio']:.2f})"
