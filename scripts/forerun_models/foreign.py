"""Tiny models of architectures that forerun runs through libllama: of each kind of memory and block one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from . import vocabulary
from .tiny import CONTEXT, LOGIT_SPREAD, Drawer

_WIDTH, _LAYERS, _HEADS, _KV_HEADS, _HEAD_SIZE = 128, 3, 4, 2, 32
_EXPERTS, _EXPERTS_USED = 8, 2
_STATE, _CONV, _RANK = 8, 4, 6  # of mamba


@dataclass(frozen=True)
class ForeignSpec:
    name: str
    arch: str
    about: str
    n_ff: int = 128
    seed: int = 1


FOREIGN = [
    ForeignSpec("foreign-bailingmoe", "bailingmoe", "a mixture of experts"),
    ForeignSpec("foreign-mixtral", "llama", "a mixture by a name that is ours, of experts whose size is not", n_ff=120),
    ForeignSpec("foreign-phi2", "phi2", "attention and MLP side by side, norms with means, a plain MLP, biases"),
    ForeignSpec("foreign-mamba", "mamba", "states instead of keys and values"),
]


def write_foreign(spec: ForeignSpec, path: Path) -> None:
    writer = gguf.GGUFWriter(path, spec.arch)
    words = vocabulary.byte_pairs(False)
    writer.add_name(spec.name)
    writer.add_description(f"random weights for tests, numpy PCG64, seed {spec.seed}")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_layer_norm_rms_eps(1e-6)
    if spec.arch == "mamba":
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(_CONV)
        writer.add_ssm_inner_size(2 * _WIDTH)
        writer.add_ssm_state_size(_STATE)
        writer.add_ssm_time_step_rank(_RANK)
    else:
        writer.add_feed_forward_length(spec.n_ff)
        writer.add_head_count(_HEADS)
        writer.add_head_count_kv(_KV_HEADS)
        writer.add_key_length(_HEAD_SIZE)
        writer.add_value_length(_HEAD_SIZE)
        writer.add_rope_dimension_count(_HEAD_SIZE)
        writer.add_rope_freq_base(10000.0)
    if spec.arch == "phi2":
        writer.add_layer_norm_eps(1e-5)
    if spec.arch == "bailingmoe":
        writer.add_expert_shared_count(1)
    if _has_experts(spec):
        writer.add_expert_count(_EXPERTS)
        writer.add_expert_used_count(_EXPERTS_USED)
        writer.add_expert_feed_forward_length(spec.n_ff)
    words.write(writer)
    for name, data in _tensors(spec, len(words.texts)):
        writer.add_tensor(name, data)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _has_experts(spec: ForeignSpec) -> bool:
    return spec.arch in ("bailingmoe", "llama")


def _tensors(spec: ForeignSpec, n_vocab: int) -> Iterator[tuple[str, np.ndarray]]:
    draw = Drawer(spec.seed, spec.name)
    yield draw.matrix("token_embd.weight", n_vocab, _WIDTH, LOGIT_SPREAD)
    for i in range(_LAYERS):
        yield draw.norm(f"blk.{i}.attn_norm.weight", _WIDTH)
        yield from _mamba_layer(draw, f"blk.{i}") if spec.arch == "mamba" else _layer(draw, spec, f"blk.{i}")
    yield draw.norm("output_norm.weight", _WIDTH)
    if spec.arch == "bailingmoe":  # its head is never the embedding
        yield draw.matrix("output.weight", n_vocab, _WIDTH, LOGIT_SPREAD)
    if spec.arch == "phi2":
        yield draw.bias("output_norm.bias", _WIDTH)
        yield draw.matrix("output.weight", n_vocab, _WIDTH, LOGIT_SPREAD)
        yield draw.bias("output.bias", n_vocab)


def _layer(draw: Drawer, spec: ForeignSpec, layer: str) -> Iterator[tuple[str, np.ndarray]]:
    q_size, kv_size, n_ff = _HEADS * _HEAD_SIZE, _KV_HEADS * _HEAD_SIZE, spec.n_ff
    for name, n, gain in (("q", q_size, 1.5), ("k", kv_size, 1.0), ("v", kv_size, 1.0)):
        yield draw.matrix(f"{layer}.attn_{name}.weight", n, _WIDTH, gain)
    yield draw.matrix(f"{layer}.attn_output.weight", _WIDTH, q_size)
    if _has_experts(spec):
        yield draw.norm(f"{layer}.ffn_norm.weight", _WIDTH)
        yield draw.matrix(f"{layer}.ffn_gate_inp.weight", _EXPERTS, _WIDTH)
        for name, n_out, n_in in (("gate", n_ff, _WIDTH), ("up", n_ff, _WIDTH), ("down", _WIDTH, n_ff)):
            of_all, data = draw.matrix(f"{layer}.ffn_{name}_exps.weight", _EXPERTS * n_out, n_in)
            yield of_all, data.reshape(_EXPERTS, n_out, n_in)
            if spec.arch == "bailingmoe":
                yield draw.matrix(f"{layer}.ffn_{name}_shexp.weight", n_out, n_in)
        return
    yield draw.matrix(f"{layer}.ffn_up.weight", n_ff, _WIDTH)
    yield draw.matrix(f"{layer}.ffn_down.weight", _WIDTH, n_ff)
    for name, n in (("attn_norm", _WIDTH), ("attn_q", q_size), ("attn_k", kv_size), ("attn_v", kv_size),
                    ("attn_output", _WIDTH), ("ffn_up", n_ff), ("ffn_down", _WIDTH)):  # fmt: skip
        yield draw.bias(f"{layer}.{name}.bias", n)


def _mamba_layer(draw: Drawer, layer: str) -> Iterator[tuple[str, np.ndarray]]:
    inner = 2 * _WIDTH
    yield draw.matrix(f"{layer}.ssm_in.weight", 2 * inner, _WIDTH)
    yield draw.matrix(f"{layer}.ssm_conv1d.weight", inner, _CONV)
    yield draw.bias(f"{layer}.ssm_conv1d.bias", inner)
    yield draw.matrix(f"{layer}.ssm_x.weight", _RANK + 2 * _STATE, inner)
    yield draw.matrix(f"{layer}.ssm_dt.weight", inner, _RANK)
    yield draw.bias(f"{layer}.ssm_dt.bias", inner)
    # As trained ones begin: states fade at different speeds.
    yield f"{layer}.ssm_a", -np.tile(np.arange(1, _STATE + 1, dtype=np.float32) / math.sqrt(_STATE), (inner, 1))
    yield f"{layer}.ssm_d", np.ones(inner, dtype=np.float32)
    yield draw.matrix(f"{layer}.ssm_out.weight", _WIDTH, inner)
