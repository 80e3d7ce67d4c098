"""Tables of what drafting brings: the page of results, and README's part of it."""

from collections.abc import Callable

from .first_tokens import N_TOKENS, medians
from .markdown import section, table
from .measured import (
    Methods, categories_of, decode_ms, interval, runs_of, same_text, speed, speed_interval,
)  # fmt: skip
from .speculation_settings import BATCHES, MODELS, TEMPERATURE

DRAFTS = {False: "texts, own layers", True: "and a draft model"}
SAMPLED = f"## At temperature {TEMPERATURE}"
BATCHED = "## Several requests at once"
FIRST = "## The first tokens of a model never seen"
PUBLISHED = "## As their authors meant them"
LLAMA = "## Beside llama.cpp's server"
SECTIONS = [*(f"## {title}" for title in MODELS.values()), SAMPLED, BATCHED, FIRST, PUBLISHED, LLAMA]


def single_methods(methods: Methods) -> list[str]:
    return [name for name in methods if name not in ("none", "auto")]


def best_single(methods: Methods, category: str | None = None) -> str:
    """The one method that a user should have chosen, knowing how it ends."""
    return min(single_methods(methods), key=lambda name: decode_ms(runs_of(methods[name], category)))


def over_best(methods: Methods, category: str | None = None) -> str:
    """How many times as fast `auto` is as the best single method."""
    best = methods[best_single(methods, category)]
    return interval(runs_of(best, category), runs_of(methods["auto"], category))


def by_speed(methods: Methods) -> list[str]:
    """Categories as `auto` does in them, the slowest first."""
    order = sorted(categories_of(methods), key=lambda category: speed(methods, "auto", category))
    return [f"{category} {speed(methods, 'auto', category):.2f}" for category in order]


def tables(*, results: dict[str, Methods], first_tokens: dict[str, dict], machines: dict[str, str]) -> list[str]:
    """The page's sections. `results` and `machines`: by setting; whatever was not measured is left out."""
    lines = []
    for model, title in MODELS.items():
        done = {draft: results[name] for draft in DRAFTS if (name := setting_name(model, draft)) in results}
        if done:
            on = {draft: machines[setting_name(model, draft)] for draft in done}
            lines += [f"## {title}", "", *overall_table(done, on), *category_table(done), *method_table(done)]
    lines += section(SAMPLED, sampled_table(results, machines))
    lines += section(BATCHED, batch_table(results, machines))
    lines += section(FIRST, first_token_table(first_tokens))
    lines += section(PUBLISHED, published_table(results.get("as-published", {})))
    return lines


def setting_name(model: str, draft: bool, rest: str = "") -> str:
    return f"{model}{'-draft' if draft else ''}{rest}"


def overall_cells(methods: Methods) -> list[str]:
    auto, best = methods["auto"], best_single(methods)
    return [
        speed_interval(methods, "auto"),
        f"`{best}` {speed(methods, best):.2f}",
        over_best(methods),
        f"{auto['tokens_per_step']:.2f}",
        same_text(auto),
    ]


OVERALL_HEAD = ["`auto`", "best single method", "`auto` over it", "tokens per pass", "the same text"]


def overall_table(done: dict[bool, Methods], machines: dict[bool, str]) -> list[str]:
    rows = ([DRAFTS[draft], *overall_cells(methods), machines[draft]] for draft, methods in done.items())
    return table(["drafts from", *OVERALL_HEAD, "on"], rows)


def category_table(done: dict[bool, Methods]) -> list[str]:
    """`auto` beside the method that is the best in each category."""
    rows = []
    for draft, methods in done.items():
        categories = categories_of(methods)

        def cells(text: Callable[[str], str]) -> list[str]:
            return [text(category) for category in categories]

        rows.append([f"`auto`, {DRAFTS[draft]}", *cells(lambda c: f"{speed(methods, 'auto', c):.2f}")])
        best = {category: best_single(methods, category) for category in categories}
        rows.append(["best single method", *cells(lambda c: f"`{best[c]}` {speed(methods, best[c], c):.2f}")])
        rows.append(["`auto` over it", *cells(lambda c: over_best(methods, c))])
    return table(["", *categories_of(next(iter(done.values())))], rows)


def method_table(done: dict[bool, Methods]) -> list[str]:
    rows = [
        [f"`{name}`", DRAFTS[draft], speed_interval(methods, name),
         f"{methods[name]['tokens_per_step']:.2f}", same_text(methods[name])]
        for draft, methods in done.items() for name in methods if name != "none"
    ]  # fmt: skip
    return table(["method", "drafts from", "speedup", "tokens per pass", "the same text"], rows)


def sampled_table(results: dict[str, Methods], machines: dict[str, str]) -> list[str]:
    rows = []
    for model, title in MODELS.items():
        for draft, words in DRAFTS.items():
            if methods := results.get(name := setting_name(model, draft, "-sampled")):
                auto = methods["auto"]
                cells = [speed_interval(methods, "auto"), by_speed(methods)[0], f"{auto['tokens_per_step']:.2f}", same_text(auto)]
                rows.append([title, words, *cells, machines[name]])
    return table(["model", "drafts from", "`auto`", "worst category", "tokens per pass", "the same text", "on"], rows)


def batch_table(results: dict[str, Methods], machines: dict[str, str]) -> list[str]:
    rows = []
    for model, title in MODELS.items():
        for batch in BATCHES:
            for draft, words in DRAFTS.items():
                if methods := results.get(name := setting_name(model, draft, f"-{batch}-at-once")):
                    rows.append([title, batch, words, *overall_cells(methods), by_speed(methods)[0], machines[name]])
    return table(["model", "at once", "drafts from", *OVERALL_HEAD, "worst category", "on"], rows)


def first_token_table(measured: dict[str, dict]) -> list[str]:
    rows = []
    for model, found in measured.items():
        auto, plain = medians(found["auto"]), medians(found["none"])
        for key, what in (("first_ms", "first"), ("last_ms", f"{N_TOKENS}th")):
            cells = [f"{auto[key]:.0f} ms", f"{plain[key]:.0f} ms", f"{auto[key] / plain[key]:.2f}"]
            rows.append([MODELS[model], what, *cells, len(found["auto"])])
    return table(["model", "token", "`auto`", "`none`", "`auto` over `none`", "repetitions"], rows)


def published_table(methods: Methods) -> list[str]:
    names = single_methods(methods)
    if not names:
        return []
    rows = [
        ["speedup", *(speed_interval(methods, name) for name in names)],
        ["tokens per pass", *(f"{methods[name]['tokens_per_step']:.2f}" for name in names)],
        ["the same text", *(same_text(methods[name]) for name in names)],
    ]
    return table(["", *(f"`{name}`" for name in names)], rows)


def llama_section(file: dict | None) -> list[str]:
    if file is None:
        return []
    methods = file["methods"]
    rows = []
    for name, result in methods.items():
        shown = f"llama-server, `{name.removeprefix('llama:')}`" if name.startswith("llama:") else f"forerun, `{name}`"
        reference = name in ("none", "llama:plain")
        rows.append([shown, f"{per_token(methods['none']) / per_token(result):.2f}", f"{1e3 / per_token(result):.0f}",
                     "" if reference else same_text(result)])  # fmt: skip
    text = [
        f"{file['identity']['n_prompts']} prompts, SmolLM2-135M in Q4_1, greedy, no datastore; all take turns prompt by prompt. *Speed* is per",
        "token, over forerun's plain decoding; a text of the server is compared with that of its own plain mode.",
        "",
    ]
    return section(LLAMA, text, [*table(["", "speed", "tokens per second", "the same text"], rows), *llama_sentence(file)])


def per_token(result: dict) -> float:
    return decode_ms(result["runs"]) / max(1, sum(run["tokens"] for run in result["runs"]))


def llama_sentence(file: dict | None) -> list[str]:
    if file is None:
        return []
    methods, best = file["methods"], file["against_llama_server"]
    plain = per_token(methods["llama:plain"]) / per_token(methods["none"])
    return [
        f"Plain decoding is {plain:.1f} times as fast as llama-server's, `{best['method']}` {best['ratio']:.2f} "
        f"({best['ratio_low']:.2f} to {best['ratio_high']:.2f}) times",
        f"as fast as its best n-gram mode, `{best['mode'].removeprefix('llama:')}`.",
        "",
    ]


def readme_table(results: dict[str, Methods], machines: dict[str, str]) -> list[str]:
    rows = []
    for model, title in MODELS.items():
        for draft, words in DRAFTS.items():
            if methods := results.get(name := setting_name(model, draft)):
                best = best_single(methods)
                categories = by_speed(methods)
                rows.append(
                    [title, words, f"{speed(methods, 'auto'):.2f}", f"`{best}` {speed(methods, best):.2f}",
                     f"{methods['auto']['tokens_per_step']:.2f}", f"{categories[-1]}, {categories[0]}", machines[name]]
                )  # fmt: skip
    head = ["model", "drafts from", "`auto`", "best single method", "tokens per pass", "best and worst category", "on"]
    return table(head, rows)
