"""Tables and plots of drafts from texts: with the size of stores, with requests at once, and in hard cases."""

from collections.abc import Callable

from . import svg
from .markdown import paragraph, picture, section, table
from .measured import Methods, same_text, speed, speed_interval
from .stores_measured import (
    BATCH_METHODS, HARD_MODELS, by_set, drafting_us, latency_ms, n_tokens, of_100, of_kind, speed_with_prompts,
    stores_of, throughput,
)  # fmt: skip

SIZED = {"foreign": "foreign text", "diluted": "answers and foreign text"}


def plots(files: list[dict]) -> dict[str, str]:
    """By name; whatever was not measured is left out."""
    drawn = {}
    if of_kind(files, "foreign"):
        speeds = size_lines(files, lambda methods: speed(methods, "sssd"))
        times = size_lines(files, lambda methods: drafting_us(methods["sssd"]))
        drawn["sizes"] = svg.plot("tokens of the store", "speedup of sssd", speeds, log_x=True)
        drawn["drafting"] = svg.plot("tokens of the store", "drafting, microseconds per pass", times, log_x=True)
    if batches := of_kind(files, "batch"):
        lines = {name: [(throughput(file, name), latency_ms(file, name)) for file in batches] for name in BATCH_METHODS}
        drawn["latency"] = svg.plot("tokens per second, all requests", "milliseconds per token of a request", lines)
    return drawn


# ---- The size of the store ----


def size_lines(files: list[dict], value: Callable[[Methods], float]) -> svg.Lines:
    found = {words: of_kind(files, kind) for kind, words in SIZED.items()}
    return {words: [(n_tokens(f), value(f["methods"])) for f in sized] for words, sized in found.items() if sized}


def sizes_section(title: str, files: list[dict]) -> list[str]:
    foreign, diluted = of_kind(files, "foreign"), of_kind(files, "diluted")
    if not foreign:
        return []
    main = foreign[0]["identity"]["set"]
    alone, answers = (by_set(files, kind).get(main) for kind in ("input", "store"))
    rows = [("none", alone), ("answers", answers), *((SIZED["foreign"], file) for file in foreign)]
    rows += [(SIZED["diluted"], file) for file in diluted]
    folders = ", ".join(f"`{folder}`" for folder in foreign[0]["identity"]["texts"])
    return section(
        title,
        paragraph(
            f"`sssd` on {main}. *Foreign text*: files below {folders}, mixed in an order that stays the same, as many",
            "as there must be. *Answers and foreign text*: beside it the store of the first table, with the model's",
            "answers to other prompts; both are searched as one. *Drafting* is all that it takes, in the input too. Bytes",
            "are those on disk; answers that were added one by one lie there without an index. The paper's stores have",
            "up to 18 GB (Section 4.4). With the model's own answers it finds speeds that grow about as the logarithm of",
            "the size, and up to 35 % more right guesses than with answers of others (Section 4.2, Figure 5). Here the",
            "model's answers stay the same few, and it is only text of others that grows.",
        ),
        picture("stores", "sizes", "Speedup against the size of the store"),
        picture("stores", "drafting", "Time of drafting against the size of the store"),
        paragraph(*dilution(answers, diluted[-1])) if answers and diluted else [],
        table(
            ["store", "tokens", "speedup", "tokens per pass", "of 100 tokens: from the store", "drafting, of the time",
             "drafting, µs per pass", "bytes per token"],
            (size_row(words, file) for words, file in rows if file),
        ),
    )  # fmt: skip


def dilution(answers: dict, diluted: dict) -> list[str]:
    """What answers are still worth among much else."""
    before, after = (file["methods"]["sssd"] for file in (answers, diluted))
    times = n_tokens(diluted) / n_tokens(answers)
    return [
        f"Of 100 tokens, {of_100(before, 'datastore'):.1f} come from the store where it has nothing but answers,",
        f"{of_100(after, 'datastore'):.1f} where it has {times:,.0f} times as many tokens, the answers among them;",
        f"a pass then gives {before['tokens_per_step']:.2f} and {after['tokens_per_step']:.2f} tokens.",
    ]


def size_row(words: str, file: dict) -> list:
    methods, result = file["methods"], file["methods"]["sssd"]
    n_bytes = sum(store["size_bytes"] for store in stores_of(file))
    return [
        words,
        f"{n_tokens(file):,}",
        speed_interval(methods, "sssd"),
        f"{result['tokens_per_step']:.2f}",
        f"{of_100(result, 'datastore'):.1f}",
        f"{100 * result['draft_share']:.1f} %",
        f"{drafting_us(result):.0f}",
        f"{n_bytes / n_tokens(file):.2f}" if stores_of(file) else "",
    ]


# ---- Several requests at once ----


def batches_section(title: str, files: list[dict]) -> list[str]:
    batches = of_kind(files, "batch")
    if not batches:
        return []
    identity = batches[0]["identity"]
    drafting = [name for name in BATCH_METHODS if name != "none"]
    return section(
        title,
        paragraph(
            f"SmolLM2-135M in Q8_0; the same {identity['n_prompts']} prompts for every number of requests at once,",
            f"first turns only, answers of {identity['batch_tokens']} tokens each. The store has the model's",
            f"answers to {identity['fill']} other prompts. A cell has the tokens per second of all requests",
            "together, and the milliseconds per token of one: requests at once over tokens per second, as the",
            "paper defines latency (Section 4.3, Figure 6). There, reading prompts counts too, which drafting does",
            "not make faster: that is in the last columns. Requests wait until all of their batch have ended,",
            "unlike in the paper.",
        ),
        picture("stores", "latency", "Latency against throughput"),
        paragraph(*(where_faster(batches, name) for name in drafting)),
        table(
            ["at once", *(f"`{name}`" for name in BATCH_METHODS), *(f"`{name}` over `none`" for name in drafting),
             *(f"`{name}`, with prompts" for name in drafting)],
            (batch_row(file, drafting) for file in batches),
        ),
    )  # fmt: skip


def batch_row(file: dict, drafting: list[str]) -> list:
    methods = file["methods"]
    return [
        file["identity"]["batch"],
        *(f"{throughput(file, name):.0f} per s, {latency_ms(file, name):.1f} ms" for name in BATCH_METHODS),
        *(f"{speed(methods, name):.2f}" for name in drafting),
        *(f"{speed_with_prompts(methods, name):.2f}" for name in drafting),
    ]


def where_faster(batches: list[dict], name: str) -> str:
    faster = [str(file["identity"]["batch"]) for file in batches if speed(file["methods"], name) > 1]
    if len(faster) == len(batches):
        return f"`{name}` is faster than plain decoding everywhere."
    if not faster:
        return f"`{name}` is nowhere faster."
    return f"`{name}` is faster than plain decoding with {', '.join(faster)} at once."


# ---- Stores without a model, random words ----


def retrieval_section(title: str, files: list[dict]) -> list[str]:
    results = [file["result"] for file in of_kind(files, "retrieval")]

    def times(key: str) -> list[str]:
        return [f"{r[key]['median']:,.1f} µs, 99 % below {r[key]['p99']:,.1f} µs" for r in results]

    rows = [
        ["tokens, segments", *(f"{r['tokens']:,}, {r['segments']}" for r in results)],
        ["building", *(f"{r['build_tokens_per_second'] / 1e6:.1f} million tokens per second" for r in results)],
        ["memory for that", *(f"{r['peak_bytes_per_token']:.1f} bytes per token of a segment" for r in results)],
        ["on disk", *(f"{r['bytes_per_token']:.2f} bytes per token" for r in results)],
        ["a search", *times("search_us")],
        ["a step", *times("step_us")],
        ["a step, text being added", *times("folding_step_us")],
        ["folded into segments meanwhile", *(f"{r['folded_tokens']:,} tokens" for r in results)],
    ]
    return section(
        title,
        paragraph(
            "`forerun bench retrieval`, with made-up text: words by Zipf's law, in sentences that come back now",
            "and then. A search is what `sssd` does in the store for a request and pass. A step is a search and",
            "about 5 ms of computing, as a pass would. Text that is added is folded into segments where a core has",
            "nothing else to do; when all cores compute, that waits, and the text is found without it. The paper's",
            "stores take 8 bytes per token (Section 3.1.3).",
        ),
        table(["threads", *(str(r["threads"]) for r in results)], rows if results else []),
    )


def random_section(title: str, files: list[dict]) -> list[str]:
    found = {file["identity"]["model"]: file for file in of_kind(files, "random")}
    rows = [
        [words, speed_interval(file["methods"], "auto"), f"{file['methods']['auto']['tokens_per_step']:.2f}",
         same_text(file["methods"]["auto"])]
        for model, words in HARD_MODELS.items() if (file := found.get(model))
    ]  # fmt: skip
    identity = next(iter(found.values()))["identity"] if found else {"n_prompts": 0, "tokens": 0}
    return section(
        title,
        paragraph(
            f"{identity['n_prompts']} prompts, words of random letters, answers of up to {identity['tokens']}",
            "tokens, no store. Nothing foretells an answer but what it repeats of the prompt and of itself.",
        ),
        table(["model", "`auto` over `none`", "tokens per pass", "the same text"], rows),
    )
