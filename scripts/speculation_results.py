#!/usr/bin/env python3
"""Measures what drafting brings, and writes docs/results/speculation.md and README's tables from it.

    scripts/speculation_results.py --prompts spec_bench.jsonl     # measures what is not measured yet
    scripts/speculation_results.py --list --prompts spec_bench.jsonl      # what that is
    scripts/speculation_results.py --render                       # writes the pages
    scripts/speculation_results.py --prompts spec_bench.jsonl --quick     # a small try, in a folder of its own

Each setting (scripts/forerun_results/speculation_settings.py) is a run of `forerun bench spec`,
kept as a file of docs/results/speculation/. One that is there already, with the same prompts,
tokens and threads, is not measured again, so that a long run can be stopped and go on; a program
that changed is for the user to know of (--again). Standard library only.
"""

import argparse
import datetime
import fnmatch
import hashlib
import json
import sys
import tempfile
from pathlib import Path

from engine_results import cpu_name
from forerun_results import first_tokens
from forerun_results.commands import Commands
from forerun_results.speculation_settings import MODELS, Setting, all_settings
from forerun_results.speculation_tables import DRAFTS, TITLE, readme_table, replace_marked, setting_name, tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
DRAFT_MODEL = "models/smollm2-draft.gguf"
QUICK = {"n_prompts": 3, "tokens": 16, "repeats": 1}


def main() -> None:
    options = parse_options()
    if options.render:
        render(options)
        return
    measurements = planned(options)
    if options.list:
        for name, identity, _ in measurements:
            print(f"{name:32} {'measured' if is_done(options.output / name, identity) else 'to do'}")
        return
    for name, identity, measure in measurements:
        path = options.output / name
        if options.again or not is_done(path, identity):
            print(name, file=sys.stderr)
            write(path, {"identity": identity, "measured": circumstances(), **measure()})


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prompts", type=Path, help="JSONL file as 'bench spec' reads it, with categories")
    parser.add_argument("--n-prompts", type=int, default=60, help="alike of every category")
    parser.add_argument("--tokens", type=int, default=128, help="of an answer, at most")
    parser.add_argument("--repeats", type=int, default=5, help="of the first tokens of a model never seen")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="files to measure: 'smollm2-q8*'")
    parser.add_argument("--again", action="store_true", help="measure what is there already, too")
    parser.add_argument("--list", action="store_true", help="show what there is to measure")
    parser.add_argument("--render", action="store_true", help="write the pages, measure nothing")
    parser.add_argument("--quick", action="store_true", help="little of everything, for a try")
    parser.add_argument("--output", type=Path, help="folder for what is measured")
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "forerun"))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if not options.render and options.prompts is None:
        parser.error("--prompts: which file?")
    if options.quick:
        vars(options).update(QUICK)
    options.output = options.output or (ROOT / "build" / "speculation-try" if options.quick else RESULTS / "speculation")
    return options


# ---- Measuring ----


def planned(options: argparse.Namespace) -> list[tuple]:
    """Name of the file, what it depends on, and what measures it."""
    prompts = options.prompts.read_bytes()
    common = {"prompts": hashlib.sha256(prompts).hexdigest(), "threads": options.threads}
    plan = []
    for setting in all_settings():
        identity = {**common, "n_prompts": options.n_prompts, "tokens": options.tokens, **setting.described()}
        plan.append((f"{setting.name}.json", identity, lambda setting=setting: bench(setting, options)))
    prompt = first_prompt(prompts.decode())
    for model in MODELS:
        identity = {**common, "model": model, "repeats": options.repeats}
        measure = lambda model=model: {
            "times": first_tokens.measure(options.program, model, prompt, options.threads, options.repeats)
        }
        plan.append((f"first-tokens-{model}.json", identity, measure))
    return [entry for entry in plan if fnmatch.fnmatch(entry[0].removesuffix(".json"), options.only)]


def first_prompt(lines: str) -> str:
    prompt = json.loads(lines.splitlines()[0])
    return prompt["turns"][0] if "turns" in prompt else prompt["prompt"]


def bench(setting: Setting, options: argparse.Namespace) -> dict:
    """What `bench spec` says of the setting's methods."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        commands = Commands(argparse.Namespace(program=options.program, output=scratch, threads=options.threads, jobs=1))
        arguments = bench_arguments(setting, options.prompts, options.n_prompts, options.tokens, scratch)
        report = commands.run("bench.json", *arguments, model=setting.model, writes=True)
    return {"forerun": report["forerun"], "methods": report["methods"]}


def bench_arguments(setting: Setting, prompts: Path, n_prompts: int, tokens: int, scratch: Path) -> list[object]:
    arguments: list[object] = [
        "bench", "spec", "--prompts", prompts, "--limit", n_prompts, "-n", tokens, "--methods", ",".join(setting.methods),
        "--batch", setting.batch, "--temp", setting.temperature, "--seed", 1, "--json", scratch / "bench.json",
    ]  # fmt: skip
    arguments += ["--draft-model", ROOT / DRAFT_MODEL] if setting.draft else []
    arguments += ["--live", scratch / "live"] if setting.live else []
    arguments += ["--tree", setting.tree] if setting.tree else []
    return arguments


def circumstances() -> dict:
    return {"on": cpu_name(), "date": datetime.date.today().isoformat()}


def is_done(path: Path, identity: dict) -> bool:
    return path.exists() and json.loads(path.read_text())["identity"] == identity


def write(path: Path, result: dict) -> None:
    """With no more digits than mean something; whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(rounded(result), separators=(",", ":")) + "\n")
    partial.replace(path)


def rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


# ---- Writing ----


def render(options: argparse.Namespace) -> None:
    files = {path.stem: json.loads(path.read_text()) for path in sorted(options.output.glob("*.json"))}
    order = [setting.name for setting in all_settings()]
    benches = {name: files[name] for name in order if name in files}
    if not benches:
        sys.exit(f"nothing is measured in {options.output}: run this with --prompts FILE first")
    results = {name: result["methods"] for name, result in benches.items()}
    times = {model: files[name]["times"] for model in MODELS if (name := f"first-tokens-{model}") in files}
    page = "\n".join([*page_head(benches), *tables(results=results, first_tokens=times)])
    if options.quick:
        (options.output / "speculation.md").write_text(page)
        print(options.output / "speculation.md")
        return
    readme = ROOT / "README.md"
    part = [*readme_head(benches), *readme_table(results)]
    readme.write_text(replace_marked(readme.read_text(), part))
    (RESULTS / "speculation.md").write_text(page)
    print(RESULTS / "speculation.md", readme)


def page_head(benches: dict[str, dict]) -> list[str]:
    results = list(benches.values())
    return [
        f"# {TITLE}",
        "",
        "Written by `scripts/speculation_results.py --render` from the files in [speculation/](speculation), which the",
        "same script measures with `forerun bench spec`. [Measured by hand](speculation-by-hand.md): llama.cpp, hard",
        "cases, datastores.",
        "",
        f"{span(results, 'n_prompts')} prompts, alike of every category, answers of up to {span(results, 'tokens')} tokens,",
        "greedy, a live datastore that began empty, unless a section says otherwise. Methods take turns prompt by prompt.",
        "*Speedup* is the decode time of plain decoding over the method's, in brackets where 95 % of resampled sets of",
        "prompts lie; *the same text* counts prompts whose tokens are plain decoding's. The best single method is the one",
        "that was the fastest of all but `auto`, over all prompts or in a category: what a user would choose who knew how",
        "it ends.",
        "",
        f"Hardware: {hardware(benches)}.",
        "",
    ]


def readme_head(benches: dict[str, dict]) -> list[str]:
    shown = [benches[name] for model in MODELS for draft in DRAFTS if (name := setting_name(model, draft)) in benches]
    n_same, n_texts = (sum(result["methods"]["auto"][key] for result in shown) for key in ("identical", "prompts"))
    same = "Every text is" if n_same == n_texts else f"{n_same} of {n_texts} texts are"
    return [
        f"`forerun bench spec`, {span(shown, 'n_prompts')} prompts of Spec-Bench, answers of up to {span(shown, 'tokens')} tokens,",
        "greedy, one request at a time, a live datastore that began empty; decode time of plain decoding over that of",
        f"`auto`, and of the best method that could be chosen instead. On {hardware(benches)}.",
        f"{same} plain decoding's, token for token.",
        "",
    ]


def hardware(benches: dict[str, dict]) -> str:
    machines = listed(
        f"{result['identity']['threads']} threads of {result['measured']['on']}" for result in benches.values()
    )
    dates = sorted(result["measured"]["date"] for result in benches.values())
    return f"{machines}, {dates[0]}" + (f" to {dates[-1]}" if dates[0] != dates[-1] else "")


def span(results: list[dict], key: str) -> str:
    numbers = [result["identity"][key] for result in results]
    return str(min(numbers)) + (f" to {max(numbers)}" if max(numbers) > min(numbers) else "")


def listed(words) -> str:
    """Each once, in the order they come."""
    return ", ".join(dict.fromkeys(words))


if __name__ == "__main__":
    main()
