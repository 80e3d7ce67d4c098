#!/usr/bin/env python3
"""Measures a little of what is published, and prints how far it is from that.

    scripts/results/quick.py --prompts spec_bench.jsonl         # make results-quick PROMPTS=spec_bench.jsonl

Of some settings of speculation.md the first prompts are answered again, with the published number of
tokens, and compared with the same prompts of the published files. Tokens per pass hardly depend on the
machine, speedups do: where it is another one than the published numbers are of, only tokens per pass count.
Ends with 1 where something is worse than published by more than its tolerance. Under 10 minutes on 2 cores.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from library.machine import machine_name
from library.markdown import table
from library.measured import decode_ms, ratio
from library.page import RESULTS, ROOT
from library.setup import Setup
from library.speculation_settings import Setting, all_settings
from speculation import bench

# Of speculation.md: each way to draft, alone and in a batch.
SETTINGS = ("smollm2", "smollm2-q8-draft", "smollm2-deep", "smollm2-q8-8-at-once")
METHODS = ("auto", "sssd", "suffix", "knapspec", "draft")
# A run of a few prompts scatters by about so much.
WORSE_TOKENS, WORSE_SPEED = 0.05, 0.08


@dataclass(frozen=True)
class Delta:
    """One number, as published and as it is now."""

    setting: str
    method: str
    what: str
    published: float
    now: float
    counts: bool  # against the change
    tolerance: float

    @property
    def change(self) -> float:
        return self.now / self.published - 1

    @property
    def is_worse(self) -> bool:
        return self.counts and self.change < -self.tolerance


def main() -> None:
    options = parse_options()
    setup = Setup(options, work=Path(tempfile.gettempdir()))
    found = []
    for setting in chosen_settings():
        path = RESULTS / "speculation" / f"{setting.name}.json"
        if not path.exists():
            print(f"{setting.name}: nothing is published", file=sys.stderr)
            continue
        published = json.loads(path.read_text())
        options.tokens = published["identity"]["tokens"]
        found += deltas(setting.name, published, bench(setup, setting)["methods"])
    print("\n".join(report(found)))
    sys.exit(any(delta.is_worse for delta in found))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prompts", type=Path, required=True, help="the file that the published pages were measured with")
    parser.add_argument("--n-prompts", type=int, default=12, help="alike of every category")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "forerun"))
    parser.set_defaults(jobs=1, model=[])
    return parser.parse_args()


def chosen_settings() -> list[Setting]:
    """With only those methods that tell something of their own."""
    settings = {setting.name: setting for setting in all_settings()}
    return [
        Setting(**{**vars(settings[name]), "methods": tuple(m for m in settings[name].methods if m in METHODS)})
        for name in SETTINGS
    ]


def deltas(setting: str, published: dict, now: dict) -> list[Delta]:
    """`now`: results by method. Only prompts that both have answered count."""
    same_machine = published["measured"]["on"] == machine_name()
    before = {name: by_prompt(result) for name, result in published["methods"].items()}
    after = {name: by_prompt(result) for name, result in now.items()}
    shared = [id for id in after["none"] if id in before["none"]]
    if not shared:
        sys.exit(f"{setting}: none of its prompts was published; was it measured with another file?")

    def runs(results: dict[str, dict], method: str) -> list[dict]:
        return [results[method][id] for id in shared]

    found = []
    for method in (name for name in after if name != "none" and name in before):
        tokens = [tokens_per_pass(runs(results, method)) for results in (before, after)]
        speeds = [ratio(runs(results, "none"), runs(results, method)) for results in (before, after)]
        found.append(Delta(setting, method, "tokens per pass", *tokens, True, WORSE_TOKENS))
        found.append(Delta(setting, method, "speedup", *speeds, same_machine, WORSE_SPEED))
    plain = [decode_ms(runs(results, "none")) for results in (after, before)]
    found.append(Delta(setting, "none", "speed", 1, plain[1] / plain[0], same_machine, WORSE_SPEED))
    return found


def by_prompt(result: dict) -> dict[str, dict]:
    return {run["id"]: run for run in result["runs"]}


def tokens_per_pass(runs: list[dict]) -> float:
    steps, accepted = (sum(run[key] for run in runs) for key in ("steps", "accepted"))
    return (steps + accepted) / max(steps, 1)


def report(found: list[Delta]) -> list[str]:
    rows = [
        [d.setting, f"`{d.method}`", d.what, f"{d.published:.2f}", f"{d.now:.2f}", f"{100 * d.change:+.1f} %",
         "WORSE" if d.is_worse else "" if d.counts else "another machine"]
        for d in found
    ]  # fmt: skip
    n_worse = sum(d.is_worse for d in found)
    verdict = f"{n_worse} worse than published" if n_worse else "nothing is worse than published"
    return [*table(["setting", "method", "what", "published", "now", "change", ""], rows), f"{len(found)} numbers, {verdict}."]


if __name__ == "__main__":
    main()
