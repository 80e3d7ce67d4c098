"""Lets the teacher write the rows that the student learns from, for a given time.

Three kinds of rows, written in this order: medium ones, half of them articles; long ones,
texts to summarise or ask about, those articles among them; short ones, conversations.
"""

import gc
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from .chat import Batch
from .compose import PromptBook
from .journal import Clock, Journal
from .llama import Weights
from .shape import Shape
from .ragged import Ragged
from .sampler import Sampler


@dataclass(frozen=True)
class RowKind:
    name: str
    n_rows: int  # at once
    n_columns: int
    n_new: int  # tokens that the teacher adds at most
    time_share: float
    extents: tuple[int, ...]
    text_lengths: tuple[int, ...] = ()  # of long texts


KINDS = (
    RowKind("medium", 2048, 768, 704, 0.2, (256, 512, 768)),
    RowKind("long", 640, 1792, 208, 0.35, (640, 896, 1152, 1408, 1792), (300, 500, 650, 750, 850, 1000, 1200, 1550)),
    RowKind("short", 4096, 448, 288, 0.45, (192, 320, 448)),
)


def write_rows(
    folder: Path, shape: Shape, weights: Weights, book: PromptBook, kinds, seconds: float, seed: int, journal: Journal
) -> None:
    """Writes rows-KIND.npz for each kind that has none; a batch of each at least, however short the time."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, kind in enumerate(kinds):
        rows = read_rows(folder, kind)
        if rows is None:
            rng = np.random.default_rng([seed, i])
            torch.manual_seed(seed + i)
            rows = Ragged.of(_rows_of(kind, shape, weights, book, Clock(seconds * kind.time_share), rng, journal))
            partial = folder / ".partial.npz"
            np.savez(partial, **rows.pack("rows"))
            partial.replace(_rows_path(folder, kind))
            journal.write("sampled", kind=kind.name, rows=len(rows), tokens=len(rows.tokens))
        if kind.name == "medium":
            book.keep_articles([rows[k] for k in range(len(rows))])


def read_rows(folder: Path, kind: RowKind) -> Ragged | None:
    """None where they were not written yet."""
    path = _rows_path(folder, kind)
    if not path.exists():
        return None
    with np.load(path) as arrays:
        return Ragged.unpack(arrays, "rows")


def _rows_path(folder: Path, kind: RowKind) -> Path:
    return folder / f"rows-{kind.name}.npz"


def _rows_of(kind: RowKind, shape, weights, book: PromptBook, clock: Clock, rng, journal: Journal) -> list[np.ndarray]:
    sampler = make_sampler(shape, weights, book.ids, kind, journal)
    rows: list[np.ndarray] = []
    slowest = 0.0
    while not rows or clock.left() > slowest:  # none is begun that cannot be ended in time
        begun = time.monotonic()
        batch, n_new = _draw(kind, book, sampler.n_rows, rng)
        try:
            new = sampler.generate(batch, n_new)
        except torch.OutOfMemoryError:
            new = []
        if not new:
            kind = replace(kind, n_rows=sampler.n_rows // 2)
            sampler = None  # before the next one asks for memory
            sampler = make_sampler(shape, weights, book.ids, kind, journal)
            continue
        # What follows a long text's answer has nothing to do with the text.
        rows += [book.through_answer(row) for row in new] if kind.text_lengths else new
        took = time.monotonic() - begun
        slowest = max(slowest, took)
        n_drawn = sum(len(row) - len(prompt) for row, prompt in zip(new, batch.prompts))
        print(
            f"{kind.name}: {len(rows)} rows, {n_drawn / took:,.0f} new tokens/s, {clock.left():.0f} s left", flush=True
        )
    return rows


def make_sampler(shape, weights, ids, kind: RowKind, journal: Journal) -> Sampler:
    """With fewer rows where memory is short."""
    n_rows = max(1, kind.n_rows)
    while True:
        _free_memory()
        try:
            sampler = Sampler(shape, weights, ids, n_rows, kind.n_columns, list(kind.extents))
            journal.write("sampler", kind=kind.name, rows=n_rows, graphs=sampler.has_graphs)
            return sampler
        except torch.OutOfMemoryError:
            if n_rows == 1:
                raise
            n_rows //= 2


def _free_memory() -> None:
    """What a sampler that is gone held."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _draw(kind: RowKind, book: PromptBook, n: int, rng: np.random.Generator) -> tuple[Batch, int]:
    """What to continue, and by how many tokens: questions about a text have short answers."""
    if kind.text_lengths:
        n_tokens = int(rng.choice(kind.text_lengths))
        if rng.random() < 0.5:
            return book.to_summarise(n, n_tokens, rng), kind.n_new
        return book.to_look_up(n, n_tokens, rng), kind.n_new // 2
    return (book.medium if kind.name == "medium" else book.short)(n, rng), kind.n_new
