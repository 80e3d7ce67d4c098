"""Tables of forerun bench engine's measurements: the page's, one for each machine, and README's."""

from .markdown import table

TITLES = {"smollm2": "SmolLM2-135M, Q4_1", "smollm2-q8": "SmolLM2-135M, Q8_0", "gemma3-270m": "Gemma-3-270m, Q4_K_M"}
SHAPES = {
    "qwen2-1.5b": "1.5B of Qwen2's shape",
    "phi4-1.5b": "1.5B of Phi 4's shape",
    "gemma2-1.5b": "1.5B of Gemma 2's shape",
    "qwen3-1.5b": "1.5B of Qwen3's shape",
    "qwen3-30b-a3b-quarter": "a quarter of Qwen3 30B-A3B's layers",
}
# What a user decides by: the rows of README's table, where they are measured.
IN_README = ["smollm2", "smollm2@4096", "smollm2-q8", "gemma3-270m", "random-qwen2-1.5b-q4_k", "random-qwen2-1.5b-q8_0"]


def place_of(file: dict) -> str:
    identity = file["identity"]
    on = file["measured"]["on"]
    return f"{identity['device']} beside {on}" if identity["device"] != "cpu" else f"{on}, {identity['threads']} threads"


def title_of(model: str) -> str:
    name, _, context = model.partition("@")
    title = TITLES.get(name) or random_title(name)
    return f"{title}, {int(context):,} tokens of context" if context else title


def random_title(name: str) -> str:
    """Of random-SHAPE-TYPE."""
    shape, _, type = name.removeprefix("random-").rpartition("-")
    return f"random weights, {SHAPES.get(shape, shape)}, {type.upper()}"


def by_place(files: list[dict]) -> dict[str, dict[str, dict]]:
    """Results by machine, then by model."""
    places: dict[str, dict[str, dict]] = {}
    for file in files:
        places.setdefault(place_of(file), {})[file["identity"]["model"]] = file["result"]
    return places


def tables(files: list[dict]) -> list[str]:
    return [line for place, measured in by_place(files).items() for line in [f"## {place}", "", *machine_table(measured)]]


def machine_table(measured: dict[str, dict]) -> list[str]:
    counts = sorted({pass_["n"] for result in measured.values() for pass_ in result["rows"]})
    rows = []
    for model, result in measured.items():
        passes = {pass_["n"]: pass_ for pass_ in result["rows"]}
        dearer = f"{passes[8]['forerun_ms'] / passes[1]['forerun_ms']:.2f}" if {1, 8} <= passes.keys() else ""
        of_rows = [cell(passes[n]) if n in passes else "" for n in counts]
        rows.append(
            [title_of(model), result.get("kernels", "ggml"), cell(result["decode"]), *of_rows, cell(result["prefill"]), dearer]
        )
    return table(["model", "kernels", "decode", *map(str, counts), "prompt", "8 of 1"], rows)


def cell(measurement: dict) -> str:
    ours = measurement["forerun_ms"]
    return f"{ours:.{0 if ours >= 100 else 1}f} ({measurement['ratio']:.2f})"


def readme_table(files: list[dict]) -> list[str]:
    """How many times as long libllama takes, or as much memory."""
    rows = []
    for place, measured in by_place(files).items():
        for model in (name for name in IN_README if name in measured):
            result = measured[model]
            passes = {pass_["n"]: pass_ for pass_ in result["rows"]}
            of_rows = " / ".join(factor(passes.get(n)) for n in (4, 8))
            rest = [factor(result.get(key)) for key in ("prefill", "load", "memory")]
            rows.append([title_of(model), place, factor(result["decode"]), of_rows, *rest])
    return table(["model", "machine", "decode", "pass of 4 / 8 tokens", "prompt", "load to first token", "memory"], rows)


def factor(measurement: dict | None) -> str:
    return f"{measurement['ratio']:.2f}" if measurement else ""
