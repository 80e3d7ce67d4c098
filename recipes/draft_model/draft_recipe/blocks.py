"""The rows as the student meets them: blocks of rows of like length, and what to learn in each.

A block names the positions whose next token is to be learnt: all of the assistant's turns
and some of the rest. Its labels, the teacher's most probable tokens there, are made once,
when the block is first met.
"""

from dataclasses import dataclass

import numpy as np
import torch

from . import llama
from .chat import ChatIds, in_answers
from .llama import Weights
from .ragged import Ragged
from .shape import Shape

N_LABELS = 48  # tokens that a label names; all others are one rest


@dataclass(frozen=True)
class BlockKind:
    n_rows: int
    answer_weight: float
    other_share: float  # of the positions outside of answers that are learnt
    other_weight: float = 0.3


KINDS = {
    "short": BlockKind(n_rows=96, answer_weight=1.0, other_share=0.5),
    "medium": BlockKind(n_rows=32, answer_weight=1.0, other_share=0.5),
    "long": BlockKind(n_rows=16, answer_weight=2.0, other_share=0.06),
}


@dataclass
class Labels:
    tokens: torch.Tensor  # (position, label) int16: an unsigned number's bits
    chances: torch.Tensor  # (position, label) float16, largest first

    def token_ids(self) -> torch.Tensor:
        return self.tokens.long() & 0xFFFF

    def part(self, positions: slice) -> "Labels":
        return Labels(self.tokens[positions], self.chances[positions])


@dataclass
class Block:
    tokens: torch.Tensor  # (row, column) int32, zeros after a row's end
    positions: torch.Tensor  # (position,) int64: row * columns + column
    weights: torch.Tensor  # (position,) float32
    labels: Labels | None = None


def make_blocks(rows: dict[str, Ragged], ids: ChatIds, device, seed: int, kinds=KINDS) -> list[Block]:
    """The same blocks in the same order for the same rows and seed."""
    rng = np.random.default_rng(seed)
    blocks = []
    for name in sorted(rows):
        lists, kind = rows[name], kinds[name]
        order = np.argsort(np.diff(lists.starts), kind="stable")
        for begin in range(0, len(order), kind.n_rows):
            blocks.append(_block([lists[i] for i in order[begin : begin + kind.n_rows]], kind, ids, device, rng))
    return [block for block in blocks if len(block.positions)]


def _block(rows: list[np.ndarray], kind: BlockKind, ids: ChatIds, device, rng: np.random.Generator) -> Block:
    tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
    lengths = np.array([len(row) for row in rows])
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
    has_next = np.arange(tokens.shape[1]) < lengths[:, None] - 1
    answers = np.zeros_like(has_next)
    answers[:, :-1] = in_answers(tokens, ids)[:, 1:]  # what counts is whose the next token is
    chosen = has_next & (answers | (rng.random(tokens.shape, np.float32) < kind.other_share))
    weights = np.where(answers, kind.answer_weight, kind.other_weight)[chosen].astype(np.float32)
    positions = np.flatnonzero(chosen)
    return Block(*(torch.from_numpy(a).to(device) for a in (tokens, positions, weights)))


class Labeller:
    """Computes labels with the teacher. `weights` are fused."""

    def __init__(self, shape: Shape, weights: Weights, n_columns: int, positions_at_once: int = 8192):
        self._shape, self._w = shape, weights
        self._turns = llama.rope_turns(shape, n_columns, weights["token_embd"].device)
        self._at_once = positions_at_once

    @torch.no_grad()
    def label(self, block: Block) -> None:
        hidden = llama.trunk(self._shape, self._w, block.tokens.long(), self._turns)
        hidden = hidden.flatten(0, 1).index_select(0, block.positions)
        n_labels = min(N_LABELS, self._shape.n_vocab - 1)
        tokens, chances = [], []
        for part in hidden.split(self._at_once):
            logits = part @ self._w["token_embd"].T
            best, where = logits.topk(n_labels, -1)
            chances.append((best.float() - logits.float().logsumexp(-1, keepdim=True)).exp().half())
            tokens.append(where.to(torch.int16))
        block.labels = Labels(torch.cat(tokens), torch.cat(chances))
