"""Texts whose domain is known, as tokens: prompts by category, and what a model answers to them."""

import json
import os
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .errors import SetupError

_REPOSITORY = Path(__file__).resolve().parents[2]
_N_TEXTS = 12  # of a domain, at most
_N_TOKENS = 48  # of an answer, at most


@dataclass(frozen=True)
class Text:
    domain: str
    prompt: list[int]
    answer: list[int]


def prompts_by_domain(path: Path) -> list[tuple[str, str]]:
    """Category and first turn of some prompts of each category, in the file's order."""
    found: dict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            prompt = json.loads(line)
            found[prompt["category"]].append(prompt["turns"][0])
        except (json.JSONDecodeError, KeyError, IndexError, TypeError):
            raise SetupError(f"{path}, line {number}: give each prompt a 'category' and 'turns'") from None
    if len(found) < 2:
        raise SetupError(f"{path} has prompts of {len(found)} categories: two or more are needed")
    return [(domain, text) for domain, texts in found.items() for text in texts[:_N_TEXTS]]


def answered(prompts: list[tuple[str, str]], model: Path) -> list[Text]:
    """Asks forerun, for the model's most probable answers."""
    program = os.environ.get("FORERUN_PROGRAM") or _REPOSITORY / "build" / "bin" / "forerun"

    def ask(prompt: tuple[str, str]) -> Text:
        domain, text = prompt
        command = [program, "run", "-m", model, "--spec", "none", "--temp", "0", "-n", str(_N_TOKENS),
                   "-t", "1", "--no-pin", "--json", "-f", "-"]  # fmt: skip
        try:
            run = subprocess.run(command, input=text, capture_output=True, text=True)
        except OSError:
            raise SetupError(
                f"cannot run {program}: build it with 'make', or set FORERUN_PROGRAM to the program"
            ) from None
        if run.returncode != 0:
            raise SetupError(f"asking {model.name} failed: {run.stderr.strip().removeprefix('forerun: ')}")
        answer = json.loads(run.stdout)
        return Text(domain, answer["prompt_tokens"], answer["tokens"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(ask, prompts))
