"""Prompts and texts that stores are filled with, and those they are measured on."""

import hashlib
import json
import random
import string
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .setup import Setup, parted, write_prompts

MAX_TEXT = 2**20  # characters of a file, so that none is most of a store
N_WORDS = 40  # of a prompt of random words


@dataclass(frozen=True)
class PromptSet:
    name: str
    digest: str  # of its file
    measured: list[dict]
    fill: list[dict]  # whose answers make the store


def alike(prompts: list[dict], n: int) -> list[dict]:
    return parted(prompts, n)[0]


def halves(name: str, prompts: list[dict], digest: str, n_measured: int, n_fill: int) -> PromptSet:
    """Of every category one half to measure, the other for the store."""
    if len(prompts) < 2:
        raise ValueError(f"{name}: two prompts at least, one to fill a store with and one to measure")
    measured, fill = parted(prompts, len(prompts) // 2)
    return PromptSet(name, digest, alike(measured, n_measured), alike(fill, n_fill))


def first_turns(prompt: dict) -> dict:
    """Without what the user says later: not all prompts have that, so that batches would shrink."""
    return {**prompt, "turns": prompt["turns"][:1]} if "turns" in prompt else prompt


def random_prompts(n: int) -> list[dict]:
    """Words of random letters, the same ones each time."""
    source = random.Random(1)

    def word() -> str:
        return "".join(source.choices(string.ascii_lowercase, k=source.randint(2, 8)))

    return [{"id": str(i), "category": "random", "turns": [" ".join(word() for _ in range(N_WORDS))]} for i in range(n)]


def kept_file(setup: Setup, prompts: list[dict]) -> Path:
    """With just these prompts, named by what it holds."""
    known = hashlib.sha256(json.dumps(prompts).encode()).hexdigest()[:12]
    return setup.artefact(f"prompts-{known}.jsonl", lambda path: write_prompts(path, prompts))


# ---- Foreign text ----


def text_files(folders: list[Path]) -> list[Path]:
    """All files below, those of all folders mixed, in an order that is the same each time."""
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                found[hashlib.sha256(str(path.relative_to(folder)).encode()).hexdigest()] = path
    return [found[key] for key in sorted(found)]


def text_of(path: Path) -> str:
    """Empty, where it cannot be read or is no text."""
    try:
        content = path.read_bytes()
        return "" if b"\0" in content else content.decode()
    except (OSError, UnicodeDecodeError):
        return ""


def write_texts(target: Path, files: Iterable[Path], n_characters: int) -> None:
    """Files, one after the other, until there are so many characters."""
    left = n_characters
    with target.open("w") as out:
        for path in files:
            text = text_of(path)[: min(left, MAX_TEXT)]
            if text:
                out.write(json.dumps({"text": text}) + "\n")
                left -= len(text)
            if left <= 0:
                return
