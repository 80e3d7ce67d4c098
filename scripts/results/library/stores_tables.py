"""Tables of drafts from texts: where drafts come from, and what other methods make of the same."""

from .markdown import paragraph, section, table
from .measured import Methods, decode_ms, interval, same_text, speed_interval
from .stores_measured import (
    BASELINES, LEARNING, VARIANTS, by_set, drafting_us, gain, of_100, per_pass, sssd, store_only, stores_of,
    warm_methods,
)  # fmt: skip
from .stores_scale_tables import batches_section, random_section, retrieval_section, sizes_section

# What the methods of a run draft from.
BESIDE = {
    "sssd": "input, store",
    "pld": "input",
    "rest": "store",
    "pia": "input, own answers",
    "suffix": "input, own answers",
}
WARM = {name: "input, own answers, warm" for name in LEARNING}
ROOFLINE = {sssd(variant): "input, store, roofline" for variant in VARIANTS}


def sources_section(title: str, files: list[dict]) -> list[str]:
    alone, stored = by_set(files, "input"), by_set(files, "store")
    sets = [name for name in stored if name in alone]
    stores = "; ".join(store_words(name, stored[name]) for name in sets)
    pairs = [(name, alone[name]["methods"], stored[name]["methods"]) for name in sets]
    return section(
        title,
        paragraph(
            "The store holds the model's own answers to other prompts of the same set; of every category one half",
            f"is for the store and one is measured, as far as they are needed ({stores}). *Of 100 tokens*: how many",
            "tokens of the answers were drafted from the input and from the store, and taken. *Input* has no",
            "store; *store* drafts nothing from the input (`--sssd-input-window 1`). `auto` drafts in other ways",
            "besides.",
        ),
        table(
            ["prompts", "method", "drafts from", "speedup", "tokens per pass", "of 100 tokens: from the input",
             "from the store", "the same text"],
            (row for pair in pairs for row in source_rows(*pair)),
        ),
        paragraph(
            "The paper finds that what input and store contribute almost adds up when drafts are large enough",
            "(Figure 4a, where their size is fixed). Here, tokens that drafts add to a pass. The size of drafts",
            "follows what they cost and how likely they are taken (`--tree auto`).",
        ),
        table(
            ["prompts", "variant", "input", "store", "their sum", "both", "both, of the sum"],
            (row for pair in pairs for row in sum_rows(*pair)),
        ),
    )  # fmt: skip


def store_words(name: str, file: dict) -> str:
    store = stores_of(file)[0]
    return f"{name}: {store['documents']:,} answers, {store['tokens']:,} tokens"


def source_rows(name: str, alone: Methods, stored: Methods) -> list[list]:
    rows = []
    for variant in VARIANTS:
        for where, methods, method in (
            ("input", alone, sssd(variant)),
            ("store", stored, store_only(variant)),
            ("both", stored, sssd(variant)),
        ):
            rows.append([name, f"`sssd`, {variant}", where, *source_cells(methods, method)])
    return [*rows, [name, "`auto`", "both", *source_cells(stored, "auto")]]


def source_cells(methods: Methods, method: str) -> list[str]:
    result = methods[method]
    shares = [f"{of_100(result, source):.1f}" for source in ("input", "datastore")]
    return [speed_interval(methods, method), f"{result['tokens_per_step']:.2f}", *shares, same_text(result)]


def sum_rows(name: str, alone: Methods, stored: Methods) -> list[list]:
    rows = []
    for variant in VARIANTS:
        of_input, of_store = gain(alone[sssd(variant)]), gain(stored[store_only(variant)])
        both, total = gain(stored[sssd(variant)]), of_input + of_store
        share = f"{100 * both / total:.0f} %" if total > 0 else ""
        rows.append([name, variant, *(f"{n:.2f}" for n in (of_input, of_store, total, both)), share])
    return rows


# ---- Other methods ----


def baselines_section(title: str, files: list[dict]) -> list[str]:
    beside, warm, roofline = (by_set(files, kind) for kind in ("baselines", "warm", "roofline"))
    rows = []
    for name, file in beside.items():
        rows += method_rows(name, file["methods"], BESIDE)
        rows += method_rows(name, warm_methods(warm[name]), WARM) if name in warm else []
        rows += method_rows(name, roofline[name]["methods"], ROOFLINE) if name in roofline else []
    return section(
        title,
        paragraph(
            "The same prompts and, for those that read one, the same store. `pld`, `rest`, `pia` (the paper's",
            "Lookahead) and `suffix` verify what their authors would (`--tree own`). `pia` and `suffix` remember",
            "their own answers: at first those to the prompts measured before; *warm*, also those to the prompts",
            "of the store, which are answered first and not counted. *Roofline* is SSSD's own rule for the size of",
            "drafts, by what the hardware verifies for nothing, instead of forerun's. The paper's Figure 4",
            "compares tokens taken and time for drafts, at sizes that are the same for all.",
        ),
        paragraph(*(best_baseline(name, file["methods"]) for name, file in beside.items())),
        table(
            ["prompts", "method", "drafts from", "speedup", "tokens per pass", "drafted per pass",
             "drafting, µs per pass", "the same text"],
            rows,
        ),
    )  # fmt: skip


def method_rows(name: str, methods: Methods, drafts_from: dict[str, str]) -> list[list]:
    return [
        [name, f"`{method}`", words, speed_interval(methods, method), f"{result['tokens_per_step']:.2f}",
         f"{per_pass(result['drafted'], result):.1f}", f"{drafting_us(result):.0f}", same_text(result)]
        for method, words in drafts_from.items() if (result := methods.get(method))
    ]  # fmt: skip


def best_baseline(name: str, methods: Methods) -> str:
    """In the run that has all of them."""
    best = min(BASELINES, key=lambda method: decode_ms(methods[method]["runs"]))
    times = interval(methods[best]["runs"], methods["sssd"]["runs"])
    return f"On {name}, `sssd` is {times} times as fast as `{best}`, the best of the others as they are."


# ---- The page ----

MAKERS = {
    "## Where drafts come from": sources_section,
    "## Beside other methods that draft from texts": baselines_section,
    "## Speed against the size of the store": sizes_section,
    "## Latency against throughput": batches_section,
    "## A store without a model": retrieval_section,
    "## Prompts of random words": random_section,
}
SECTIONS = list(MAKERS)


def tables(files: list[dict]) -> list[str]:
    """Its sections. Whatever was not measured is left out."""
    return [line for title, maker in MAKERS.items() for line in maker(title, files)]
