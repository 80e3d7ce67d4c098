#!/usr/bin/env python3
from library import first_tokens
from library.page import ROOT, Measurement, Page, Written, hardware, how_measured, span
from library.setup import DRAFT_MODEL, Setup, read_prompts, slim
from library.speculation_settings import MODELS, Setting, all_settings
from library.speculation_tables import (
    DRAFTS, SECTIONS, llama_section, llama_sentence, readme_table, setting_name, tables,
)  # fmt: skip

README = ROOT / "README.md"
BESIDE_LLAMA = ("auto", "sssd")
TURN_BATCHES = 4  # of `bench spec`


class Speculation(Page):
    """Measures what drafting brings: docs/results/speculation.md, and README's table."""

    name = "speculation"
    sections = SECTIONS
    quick = {"repeats": 1}

    def add_options(self, parser) -> None:
        parser.add_argument("--repeats", type=int, default=5, help="of the first tokens of a model never seen")
        parser.add_argument("--llama-server", metavar="PATH", help="llama.cpp's server, to compare with")

    def measurements(self, setup: Setup) -> list[Measurement]:
        settings = [
            Measurement(
                setting.name,
                setup.identity(**setting.described(), n_prompts=n_prompts(setup, setting)),
                lambda setting=setting: bench(setup, setting),
            )
            for setting in all_settings()
        ]
        firsts = [
            Measurement(
                f"first-tokens-{model}",
                setup.identity(model=model, repeats=setup.options.repeats),
                lambda model=model: {"times": first(setup, model)},
            )
            for model in MODELS
        ]
        server = Measurement("llama-server", setup.identity(methods=list(BESIDE_LLAMA)), lambda: beside_llama(setup))
        return [*settings, *firsts, *([server] if setup.options.llama_server else [])]

    def write(self, files: dict[str, dict]) -> Written:
        benches = {setting.name: files[setting.name] for setting in all_settings() if setting.name in files}
        results = {name: file["methods"] for name, file in benches.items()}
        machines = {name: file["measured"]["on"] for name, file in benches.items()}
        times = {model: files[name]["times"] for model in MODELS if (name := f"first-tokens-{model}") in files}
        head = page_head(files, benches.values())
        server = files.get("llama-server")
        page = [*head, *tables(results=results, first_tokens=times, machines=machines), *llama_section(server)]
        parts = {}
        if shown := in_readme(benches):
            parts[README] = [*readme_head(shown), *readme_table(results, machines), *llama_sentence(server)]
        return Written(page, parts=parts)


def n_prompts(setup: Setup, setting: Setting) -> int:
    """Methods take turns of several batches; with fewer than two turns they would run one after the other."""
    options = setup.options
    at_least = 2 * TURN_BATCHES * setting.batch if setting.batch > 1 and not options.quick else 0
    return max(options.n_prompts, at_least)


def bench(setup: Setup, setting: Setting) -> dict:
    flags: list[object] = ["--batch", setting.batch, "--temp", setting.temperature]
    flags += ["--draft-model", setup.model(DRAFT_MODEL)] if setting.draft else []
    flags += ["--tree", setting.tree] if setting.tree else []
    with setup.empty_folder() as folder:
        flags += ["--live", folder / "live"] if setting.live else []
        return setup.bench(setting.model, list(setting.methods), *flags, n_prompts=n_prompts(setup, setting))


def beside_llama(setup: Setup) -> dict:
    """Our methods and all n-gram modes of the server, taking turns."""
    report = setup.bench_report("smollm2", list(BESIDE_LLAMA), "--llama-server", setup.options.llama_server)
    kept = {key: report[key] for key in ("forerun", "llama_server", "against_llama_server")}
    return {**kept, "methods": {name: slim(result) for name, result in report["methods"].items()}}


def first(setup: Setup, model: str) -> dict:
    prompt = read_prompts(setup.options.prompts)[0]["turns"][0]
    return first_tokens.measure(setup.program.path, setup.model(model), prompt, setup.options.threads, setup.options.repeats)


def page_head(files: dict[str, dict], benches) -> list[str]:
    benches = list(benches)
    return [
        "# Speculation, measured",
        "",
        *how_measured("speculation", files.values()),
        f"{span(benches, 'n_prompts')} prompts, alike of every category, answers of up to {span(benches, 'tokens')} tokens,",
        "greedy, a live datastore that began empty, unless a section says otherwise. Methods take turns prompt by prompt.",
        "*Speedup* is the decode time of plain decoding over the method's, in brackets where 95 % of resampled sets of",
        "prompts lie; *the same text* counts prompts whose tokens are plain decoding's. The best single method is the one",
        "that was the fastest of all but `auto`, over all prompts or in a category: what a user would choose who knew how",
        "it ends.",
        "",
    ]


def in_readme(benches: dict[str, dict]) -> list[dict]:
    return [benches[name] for model in MODELS for draft in DRAFTS if (name := setting_name(model, draft)) in benches]


def readme_head(shown: list[dict]) -> list[str]:
    n_same, n_texts = (sum(result["methods"]["auto"][key] for result in shown) for key in ("identical", "prompts"))
    same = "Every text is" if n_same == n_texts else f"{n_same} of {n_texts} texts are"
    return [
        f"`forerun bench spec`, {span(shown, 'n_prompts')} prompts of Spec-Bench, answers of up to {span(shown, 'tokens')} tokens,",
        "greedy, one request at a time, a live datastore that began empty; decode time of plain decoding over that of",
        f"`auto`, and of the best method that could be chosen instead. On {hardware(shown)}.",
        f"{same} plain decoding's, token for token.",
        "",
    ]


if __name__ == "__main__":
    Speculation().main()
