"""Trains the student on labelled blocks until its time is over, and can go on in a later run."""

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from . import llama
from .blocks import Block, Labeller
from .journal import Clock, Journal, Ticker
from .llama import Weights
from .shape import Shape
from .loss import head_loss
from .optimiser import Optimiser
from .student import unfused, working_weights

_CHECK_EVERY = 25  # steps between looks at the loss, which wait for the device


@dataclass(frozen=True)
class TrainOptions:
    matrix_rate: float = 3.5e-3
    other_rate: float = 1.5e-3
    n_warmup: int = 150
    last_rate: float = 0.02  # share of the rate at the end
    round_from: float = 0.5  # share of the training after which weights are rounded as in the file
    hard_share: float = 0.3
    blocks_per_step: int = 4
    positions_at_once: int = 8192
    save_every_s: float = 120
    measure_every_s: float = 60


class Training:
    """Owns the parameters and all that a later run needs. `n_columns`: of the longest row."""

    def __init__(self, shape: Shape, params: Weights, options: TrainOptions, n_columns: int, seed: int):
        self.shape, self.params, self.options = shape, params, options
        device = params["token_embd"].device
        self._dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self._turns = llama.rope_turns(shape, n_columns, device)
        self._optimiser = Optimiser(params)
        self._embedding_grad = torch.zeros_like(params["token_embd"])
        self._at_once = options.positions_at_once
        self._rate_scale = 1.0
        self._seed = seed
        self._deck: list[int] = []
        self.trained_s, self.n_steps, self.n_positions, self.n_decks = 0.0, 0, 0, 0

    def run(
        self,
        blocks: list[Block],
        labeller: Labeller,
        clock: Clock,
        later_s: float,
        journal: Journal,
        folder: Path,
        measure,
    ) -> None:
        """Until `clock` is over, one step at least; `later_s` more seconds are to follow in other runs."""
        begun, trained_before = time.monotonic(), self.trained_s
        say, save, look = Ticker(10), Ticker(self.options.save_every_s), Ticker(self.options.measure_every_s)
        good, sums, last = self._copy(), [], (begun, self.n_positions)
        is_over = False
        while not is_over:
            is_over = clock.left() <= 0
            self.trained_s = trained_before + time.monotonic() - begun
            progress = self.trained_s / (self.trained_s + max(clock.left(), 0.01) + later_s)
            sums.append(self.step(blocks, labeller, progress))
            if self.n_steps % _CHECK_EVERY:
                continue
            weight, loss, agreed = torch.stack(sums).sum(0).tolist()
            sums.clear()
            if not math.isfinite(loss):
                self._go_back(good, journal)
                continue
            if self.n_steps % (20 * _CHECK_EVERY) == 0:
                good = self._copy()
            if say():
                now = time.monotonic()
                rate, last = (self.n_positions - last[1]) / (now - last[0]), (now, self.n_positions)
                facts = {
                    "step": self.n_steps,
                    "progress": round(progress, 4),
                    "deck": self.n_decks,
                    "loss": round(loss / weight, 4),
                }
                labelled = sum(block.labels is not None for block in blocks) / len(blocks)
                journal.write(
                    "train",
                    **facts,
                    agreed=round(agreed / weight, 4),
                    positions_per_s=round(rate),
                    labelled=round(labelled, 3),
                )
            if look():
                journal.write("agreement", step=self.n_steps, **measure(self.weights(progress)))
            if save():
                self.save(folder)
        self.trained_s = trained_before + time.monotonic() - begun

    def step(self, blocks: list[Block], labeller: Labeller, progress: float) -> torch.Tensor:
        """Learns from the next few blocks; returns (weight, loss, agreed), summed over their positions."""
        chosen = [blocks[i] for i in self._draw(len(blocks))]
        while True:
            try:
                return self._step(chosen, labeller, progress)
            except torch.OutOfMemoryError:
                if self._at_once <= 256:
                    raise
                self._at_once //= 2
                print(f"out of memory: {self._at_once} positions at once from here on", flush=True)
            torch.cuda.empty_cache()

    def weights(self, progress: float = 1.0) -> Weights:
        """What the student computes with at this point of its training."""
        return working_weights(self.params, self._dtype, progress >= self.options.round_from)

    def save(self, folder: Path) -> None:
        facts = {n: getattr(self, n) for n in ("trained_s", "n_steps", "n_positions", "n_decks")}
        state = {
            "params": self.params,
            "optimiser": self._optimiser.state(),
            "facts": facts,
            "shape": self.shape.__dict__,
        }
        partial = folder / ".partial-state.pt"
        torch.save(state, partial)
        os.replace(partial, folder / "state.pt")

    def load(self, folder: Path) -> bool:
        """False where no run left a state of this shape."""
        path = folder / "state.pt"
        state = torch.load(path, map_location=self.params["token_embd"].device) if path.exists() else {}
        if state.get("shape") != self.shape.__dict__:
            return False
        for name, tensor in state["params"].items():
            self.params[name].copy_(tensor)
        self._optimiser.load(state["optimiser"])
        for name, value in state["facts"].items():
            setattr(self, name, value)
        return True

    def _draw(self, n_blocks: int) -> list[int]:
        """Every block once before any comes again."""
        drawn: list[int] = []
        while len(drawn) < self.options.blocks_per_step:
            if not self._deck:
                rng = torch.Generator().manual_seed(self._seed + self.n_decks)
                self._deck = torch.randperm(n_blocks, generator=rng).tolist()
                self.n_decks += 1
            drawn.append(self._deck.pop())
        return drawn

    def _step(self, chosen: list[Block], labeller: Labeller, progress: float) -> torch.Tensor:
        w = {name: t.detach().requires_grad_() for name, t in self.weights(progress).items()}
        self._embedding_grad.zero_()
        sums = []
        for block in chosen:
            if block.labels is None:
                labeller.label(block)
            hidden = llama.trunk(self.shape, w, block.tokens.long(), self._turns).flatten(0, 1)
            hidden = hidden.index_select(0, block.positions)
            embedding = w["token_embd"].detach()
            found = head_loss(
                hidden.detach(),
                embedding,
                block.labels,
                block.weights,
                self._embedding_grad,
                self.options.hard_share,
                self._at_once,
            )
            hidden.backward(found.hidden_grad)
            sums.append(torch.stack([block.weights.sum(), found.loss, found.n_agreed]))
        total = torch.stack(sums).sum(0)
        grads = unfused(self.shape, {name: t.grad.float() for name, t in w.items()})
        grads["token_embd"] = grads["token_embd"] + self._embedding_grad
        rate = self._rate_scale * self._rate(progress)
        grads = {name: grad / total[0] for name, grad in grads.items()}
        self._optimiser.step(grads, rate * self.options.matrix_rate, rate * self.options.other_rate)
        self.n_steps += 1
        self.n_positions += sum(len(block.positions) for block in chosen)
        return total

    def _rate(self, progress: float) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        last = self.options.last_rate
        return min(1.0, (self.n_steps + 1) / self.options.n_warmup) * (last + (1 - last) * cosine)

    def _copy(self) -> Weights:
        return {name: p.clone() for name, p in self.params.items()}

    def _go_back(self, good: Weights, journal: Journal) -> None:
        """After numbers that are none: to the last good parameters, at half the rate."""
        for name, tensor in good.items():
            self.params[name].copy_(tensor)
        self._optimiser = Optimiser(self.params)
        self._rate_scale /= 2
        journal.write("loss is no number", step=self.n_steps, rate_scale=self._rate_scale)
