"""How often the student's most probable token is the teacher's, on the teacher's own answers."""

from pathlib import Path

import numpy as np
import torch

from . import llama
from .chat import Batch, ChatIds, chat_ids
from .journal import Journal
from .llama import Weights
from .shape import Shape
from .ragged import Ragged
from .sampling import RowKind, make_sampler


class Measure:
    """The file that the recipe's first step wrote, and the answers when they are made."""

    def __init__(self, path: Path, n_prompts: int | None = None):
        with np.load(path) as arrays:
            self.categories = [str(c) for c in arrays["categories"]][:n_prompts]
            prompts = Ragged.unpack(arrays, "prompts")
            self.prompts = Ragged.of(prompts[i] for i in range(len(self.categories)))
            chat = Ragged.unpack(arrays, "chat")
        self._end = int(chat[1][0])  # what the tail begins with ends a turn
        self.ids: ChatIds = chat_ids(chat[0], chat[1])
        self.rows: Ragged | None = None  # prompts with their answers

    @property
    def longest(self) -> int:
        return int(np.diff(self.prompts.starts).max())

    def answer(self, path: Path, shape: Shape, weights: Weights, n_new: int, journal: Journal) -> None:
        """Always the most probable token, up to the end of the turn. Kept in the file `path`."""
        if path.exists():
            with np.load(path) as arrays:
                self.rows = Ragged.unpack(arrays, "rows")
            return
        n = len(self.prompts)
        n_columns = -(-(self.longest + n_new + 8) // 128) * 128
        sampler = make_sampler(
            shape, weights, self.ids, RowKind("answers", n, n_columns, n_new, 1.0, (n_columns,)), journal
        )
        rows: list[np.ndarray] = []
        for begin in range(0, n, sampler.n_rows):
            prompts = [self.prompts[i] for i in range(begin, min(begin + sampler.n_rows, n))]
            cold = np.zeros(len(prompts))
            rows += sampler.generate(Batch(prompts, cold, cold), n_new)
        self.rows = Ragged.of(self._ended(row, len(self.prompts[i])) for i, row in enumerate(rows))
        np.savez_compressed(path, **self.rows.pack("rows"))
        journal.write("answered", prompts=n, tokens=len(self.rows.tokens) - len(self.prompts.tokens))

    @torch.no_grad()
    def agreement(self, shape: Shape, weights: Weights) -> dict:
        """`weights` are fused. Shares of the answers' tokens: of all, and by category."""
        device = weights["token_embd"].device
        turns = llama.rope_turns(shape, int(np.diff(self.rows.starts).max()), device)
        counts: dict[str, list[int]] = {}
        for i, category in enumerate(self.categories):
            row, n_prompt = torch.from_numpy(self.rows[i].astype(np.int64)).to(device), len(self.prompts[i])
            hidden = llama.trunk(shape, weights, row[None], turns)[0, n_prompt - 1 : -1]
            same = (hidden @ weights["token_embd"].T).argmax(-1) == row[n_prompt:]
            count = counts.setdefault(category, [0, 0])
            count[0] += int(same.sum())
            count[1] += len(same)
        right, total = (sum(c[k] for c in counts.values()) for k in (0, 1))
        return {"all": round(right / total, 4)} | {name: round(c[0] / c[1], 4) for name, c in sorted(counts.items())}

    def _ended(self, row: np.ndarray, n_prompt: int) -> np.ndarray:
        ends = np.flatnonzero(row[n_prompt:] == self._end)
        return row[: n_prompt + ends[0] + 1] if len(ends) else row
