"""Muon for the layers' matrices, Adam for the rest.

Muon (Jordan et al., 2024) steps along the nearest matrix with equal singular values to the
momentum, found by Newton's iteration; scaled, as Liu et al. (2025, "Muon is scalable for
LLM training") propose, so that a step is as large as Adam's and one rate serves both.
"""

import torch

from .llama import Weights
from .shape import LAYER_MATRICES

_MOMENTUM = 0.95
_BETAS = (0.9, 0.98)
_EPS = 3e-7  # large: the embeddings of words that hardly occur stay as the teacher has them
_STEP_SIZE = 0.2  # of Adam, in the root of the mean square
_DECAY = 0.05  # of matrices


class Optimiser:
    """Changes `params` in place."""

    def __init__(self, params: Weights):
        self._params = params
        self._first = {name: torch.zeros_like(p) for name, p in params.items()}
        self._second = {name: torch.zeros_like(p) for name, p in params.items() if name not in LAYER_MATRICES}
        self._n_steps = 0

    @torch.no_grad()
    def step(self, grads: Weights, matrix_rate: float, other_rate: float) -> None:
        self._n_steps += 1
        for name, p in self._params.items():
            if name in LAYER_MATRICES:
                self._muon(p, grads[name], self._first[name], matrix_rate)
            else:
                self._adam(name, p, grads[name], other_rate)

    def state(self) -> dict:
        return {"first": self._first, "second": self._second, "n_steps": self._n_steps}

    def load(self, state: dict) -> None:
        for mine, theirs in ((self._first, state["first"]), (self._second, state["second"])):
            for name, tensor in theirs.items():
                mine[name].copy_(tensor)
        self._n_steps = state["n_steps"]

    @staticmethod
    def _muon(p: torch.Tensor, grad: torch.Tensor, momentum: torch.Tensor, rate: float) -> None:
        momentum.lerp_(grad, 1 - _MOMENTUM)
        update = orthogonal(grad.lerp(momentum, _MOMENTUM))
        scale = _STEP_SIZE * max(p.shape[-2:]) ** 0.5
        p.mul_(1 - rate * _DECAY).add_(update, alpha=-rate * scale)

    def _adam(self, name: str, p: torch.Tensor, grad: torch.Tensor, rate: float) -> None:
        first, second = self._first[name], self._second[name]
        first.lerp_(grad, 1 - _BETAS[0])
        second.mul_(_BETAS[1]).addcmul_(grad, grad, value=1 - _BETAS[1])
        corrected = (1 - _BETAS[1] ** self._n_steps) ** 0.5 / (1 - _BETAS[0] ** self._n_steps)
        p.addcdiv_(first, second.sqrt().add_(_EPS), value=-rate * corrected)


def orthogonal(x: torch.Tensor, n_steps: int = 5) -> torch.Tensor:
    """x: (layer, out, in); about U V' of each matrix's singular value decomposition U S V'."""
    dtype = torch.bfloat16 if x.is_cuda else torch.float32
    is_tall = x.shape[-2] > x.shape[-1]
    y = (x.mT if is_tall else x).to(dtype)
    y = y / (y.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(n_steps):
        square = y @ y.mT
        y = 3.4445 * y + (-4.7750 * square + 2.0315 * square @ square) @ y
    return (y.mT if is_tall else y).to(x.dtype)
