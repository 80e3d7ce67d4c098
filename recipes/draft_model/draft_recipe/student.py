"""The student: where it starts, what it computes with, and its state on disk."""

from pathlib import Path

import numpy as np
import torch

from . import llama
from .llama import Weights
from .shape import LAYER_MATRICES, LAYER_NORMS, Shape
from .quantise import rounded

N_PARTS = 4  # of the weights that travel: small files
_ROUNDED = ("token_embd", *LAYER_MATRICES)


def new_student(shape: Shape, teacher_embedding: torch.Tensor, seed: int) -> Weights:
    """float32. Embeddings are the teacher's on their main directions, then turned at random.

    Turning spreads the few large directions over all numbers, which suits the blocks of the
    file's weight type. Layers start as no change at all: what they add to the stream is 0.
    """
    rng = torch.Generator().manual_seed(seed)
    draw = lambda *size: torch.randn(*size, generator=rng)
    embedding = teacher_embedding.double()
    _, directions = torch.linalg.eigh(embedding.T @ embedding)  # least first
    turn, _ = torch.linalg.qr(draw(shape.width, shape.width).double().to(embedding.device))
    n_kept = min(shape.width, embedding.shape[1])
    kept = torch.zeros(embedding.shape[1], shape.width, dtype=torch.double, device=embedding.device)
    kept[:, :n_kept] = directions[:, -n_kept:]
    params = {
        name: draw(*size) * 0.5 / size[-1] ** 0.5 for name, size in shape.sizes().items() if name in LAYER_MATRICES
    }
    params["attn_output"].zero_()
    params["ffn_down"].zero_()
    params |= {name: torch.ones(shape.sizes()[name]) for name in LAYER_NORMS}
    params["output_norm"] = torch.full((shape.width,), 0.3)
    params["token_embd"] = (embedding @ kept @ turn).float().cpu()
    return {name: params[name].contiguous() for name in shape.sizes()}


@torch.no_grad()
def working_weights(params: Weights, dtype: torch.dtype, is_rounded: bool) -> Weights:
    """Fused; rounded as the file will hold them where asked for."""
    if is_rounded:
        params = params | {name: rounded(params[name]) for name in _ROUNDED}
    return llama.fused(params, dtype)


def unfused(shape: Shape, w: Weights) -> Weights:
    """The parts of fused weights, or of their gradients."""
    q, kv = shape.n_head * shape.head_size, shape.n_head_kv * shape.head_size
    parts = dict(w)
    parts["attn_q"], parts["attn_k"], parts["attn_v"] = parts.pop("attn_qkv").split([q, kv, kv], 1)
    parts["ffn_gate"], parts["ffn_up"] = parts.pop("ffn_gate_up").chunk(2, 1)
    return parts


def save_parts(folder: Path, params: Weights) -> None:
    """float16 in a few files that can be carried from machine to machine."""
    flat = torch.cat([params[name].detach().flatten() for name in sorted(params)]).half().cpu().numpy()
    for i, part in enumerate(np.array_split(flat, N_PARTS)):
        np.savez(folder / f"student-{i}.npz", weights=part)


def load_parts(folder: Path, shape: Shape) -> Weights | None:
    """None where the parts are not all there."""
    paths = [folder / f"student-{i}.npz" for i in range(N_PARTS)]
    if not all(path.exists() for path in paths):
        return None
    flat = torch.from_numpy(np.concatenate([np.load(path)["weights"] for path in paths])).float()
    sizes = shape.sizes()
    split = flat.split([int(np.prod(sizes[name])) for name in sorted(sizes)])
    return {name: part.reshape(sizes[name]).clone() for name, part in zip(sorted(sizes), split)}
