"""The llama architecture as functions of a dictionary of weights; teacher and student share it.

Weights are named as in a GGUF, without "blk.N." and ".weight": what every layer has is
one tensor with the layer in front. Queries and keys are laid out as GGUF stores them for
this architecture: the two numbers that rope turns together lie side by side.
"""

import torch
import torch.nn.functional as F

from .shape import Shape

Weights = dict[str, torch.Tensor]


def fused(weights: Weights, dtype: torch.dtype) -> Weights:
    """What the functions below compute with: few, wide matrices of type `dtype`."""
    w = {name: t.to(dtype) for name, t in weights.items()}
    return {
        "token_embd": w["token_embd"],
        "output_norm": w["output_norm"],
        "attn_norm": w["attn_norm"],
        "ffn_norm": w["ffn_norm"],
        "attn_qkv": torch.cat([w["attn_q"], w["attn_k"], w["attn_v"]], 1),
        "attn_output": w["attn_output"],
        "ffn_gate_up": torch.cat([w["ffn_gate"], w["ffn_up"]], 1),
        "ffn_down": w["ffn_down"],
    }


def rope_turns(shape: Shape, n_positions: int, device) -> torch.Tensor:
    """(position, pair) complex numbers of length 1."""
    exponents = torch.arange(0, shape.head_size, 2, dtype=torch.float64) / shape.head_size
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] * shape.rope_base**-exponents
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).to(device)


def turned(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """x: (row, position, head, size); turns: (position, pair) or (row, position, pair)."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns.unsqueeze(-2)).flatten(-2).to(x.dtype)


def norm(x: torch.Tensor, weight: torch.Tensor, shape: Shape) -> torch.Tensor:
    return F.rms_norm(x, (shape.width,), weight, shape.eps)


def queries_keys_values(shape: Shape, x, w_norm, w_qkv, turns):
    """x: (row, position, width); returns three tensors (row, head, position, size)."""
    n_q, n_kv = shape.n_head, shape.n_head_kv
    heads = F.linear(norm(x, w_norm, shape), w_qkv).unflatten(-1, (n_q + 2 * n_kv, shape.head_size))
    qk = turned(heads[:, :, : n_q + n_kv], turns)
    q, k, v = qk[:, :, :n_q], qk[:, :, n_q:], heads[:, :, n_q + n_kv :]
    return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)


def feed_forward(shape: Shape, x, w_norm, w_gate_up, w_down) -> torch.Tensor:
    gate, up = F.linear(norm(x, w_norm, shape), w_gate_up).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, w_down)


def trunk(shape: Shape, w: Weights, tokens: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """tokens: (row, position), each row from its beginning; returns normed (row, position, width)."""
    x = F.embedding(tokens, w["token_embd"])
    names = ("attn_norm", "attn_qkv", "attn_output", "ffn_norm", "ffn_gate_up", "ffn_down")
    for a_norm, qkv, out, f_norm, gate_up, down in zip(*(w[name].unbind(0) for name in names)):
        q, k, v = queries_keys_values(shape, x, a_norm, qkv, turns[: tokens.shape[1]])
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + F.linear(seen.transpose(1, 2).flatten(2), out)
        x = feed_forward(shape, x, f_norm, gate_up, down)
    return norm(x, w["output_norm"], shape)
