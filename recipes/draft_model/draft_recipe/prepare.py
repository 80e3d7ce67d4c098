"""Makes the two files of tokens that the recipe works with: what to ask, and what to measure with.

This step runs where forerun is built; the others need neither it nor any text.
"""

import json
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from forerun_models.errors import SetupError
from forerun_models.gguf_copy import Source

from . import documents, texts, topics
from .ragged import Ragged

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"  # before a user's first turn
TAIL = "<|im_end|>\n<|im_start|>assistant\n"  # after it
_BETWEEN = "<|endoftext|>"  # stands between the texts that are tokenised together
_LETTERS_AT_ONCE = 2_000_000
_SPACE = "\u0120"  # how this vocabulary writes a space in front of a word


class Tokenizer:
    """forerun's, for many texts at a time."""

    def __init__(self, program: str, model: Path):
        self._command = [program, "tokenize", "--json", "--no-special", "--parse-special", "-m", str(model)]
        self._between = int(self._call(_BETWEEN)[0])

    def __call__(self, lists: Iterable[str]) -> Ragged:
        """One list of tokens for each text; texts that name control tokens would read as those."""
        found: list[np.ndarray] = []
        batch: list[str] = []
        n_letters = 0
        for text in lists:
            batch.append(text)
            n_letters += len(text)
            if n_letters > _LETTERS_AT_ONCE:
                found += self._split(batch)
                batch, n_letters = [], 0
        return Ragged.of(found + (self._split(batch) if batch else []))

    def _split(self, batch: list[str]) -> list[np.ndarray]:
        tokens = self._call(_BETWEEN.join(batch))
        parts = np.split(tokens, np.flatnonzero(tokens == self._between))
        return [parts[0], *(part[1:] for part in parts[1:])]

    def _call(self, text: str) -> np.ndarray:
        try:
            run = subprocess.run(self._command, input=text, capture_output=True, text=True)
        except OSError:
            raise SetupError(
                f"cannot run {self._command[0]}: build it with 'make', or name it with --program"
            ) from None
        if run.returncode != 0:
            raise SetupError(f"tokenising failed: {run.stderr.strip().splitlines()[-1]}")
        return np.array([t["id"] for t in json.loads(run.stdout)["tokens"]], np.int64)


def write_prompts(path: Path, tokenizer: Tokenizer, teacher: Source, extra: list[str], seed: int, n_turns: int) -> dict:
    """`extra`: more turns of users. Returns counts for the log."""
    rng = random.Random(seed)
    turns = [*texts.turns(n_turns, rng), *_german_turns(rng), *extra]
    rng.shuffle(turns)
    articles = [texts.article(rng) for _ in range(n_turns // 3)]
    books = _distinct(documents.documents())
    code = list(dict.fromkeys(c for c in documents.functions() if "<|" not in c))
    rng.shuffle(code)
    lists = {
        "turns": turns,
        "article_asks": [ask for ask, _ in articles],
        "article_starts": [start for _, start in articles],
        "paragraphs": [p for book in books for p in book],
        "functions": code[:2000],
        "ask_before": topics.ASK_BEFORE,
        "ask_after": topics.ASK_AFTER,
        "ask_of_code": topics.ASK_OF_CODE,
        "chat": [HEAD, TAIL, "\n", "\n\n"],
    }
    packed: dict[str, np.ndarray] = {
        "books": np.cumsum([0, *map(len, books)]).astype(np.int32),
        "spaced": spaced_tokens(teacher.value("tokenizer.ggml.tokens")),
    }
    for name, entries in lists.items():
        packed |= tokenizer(entries).pack(name)
    np.savez_compressed(path, **packed)
    return {name: len(entries) for name, entries in lists.items()} | {"bytes": path.stat().st_size}


def write_measure(path: Path, tokenizer: Tokenizer, prompts: Path) -> dict:
    """`prompts`: JSON lines with "category" and "turns"; the first turn of each is asked."""
    lines = [json.loads(line) for line in prompts.read_text().splitlines() if line]
    asked = tokenizer(HEAD + line["turns"][0] + TAIL for line in lines)
    categories = np.array([line.get("category", "") for line in lines])
    np.savez_compressed(path, categories=categories, **asked.pack("prompts"), **tokenizer([HEAD, TAIL]).pack("chat"))
    return {"prompts": len(lines), "bytes": path.stat().st_size}


def extra_turns(prompts: Path) -> list[str]:
    """First turns of a JSON lines file; takes "turns", "prompt", "question", "instruction" or "text"."""
    found = []
    for line in prompts.read_text().splitlines():
        entry = json.loads(line) if line else {}
        turn = entry.get("turns", [None])[0] or next(
            (entry[k] for k in ("prompt", "question", "instruction", "text") if k in entry), ""
        )
        if turn and "<|" not in turn:
            found.append(turn)
    return found


def spaced_tokens(vocabulary: list[str]) -> np.ndarray:
    """For each token the one that has a space in front of its text; where there is none, itself."""
    ids = {text: i for i, text in enumerate(vocabulary)}
    return np.array([ids.get(_SPACE + text, i) for i, text in enumerate(vocabulary)], np.uint16)


def _german_turns(rng: random.Random) -> list[str]:
    asks = ["Translate German to English:", "Translate to English:"]
    return [f"{rng.choice(asks)} {sentence}" for sentence in documents.german_sentences()]


def _distinct(books: Iterable[list[str]]) -> list[list[str]]:
    """Without what was said before: licences, and manuals that are installed twice."""
    seen: set[str] = set()
    found = []
    for book in books:
        kept = [p for p in book if p not in seen and "<|" not in p]
        seen.update(kept)
        if sum(map(len, kept)) >= 600:
            found.append(kept)
    return found
