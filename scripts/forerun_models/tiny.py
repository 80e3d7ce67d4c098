"""Writes a tiny model: random weights with the statistics of trained ones.

Weights have variance 1 / fan-in, so activations keep their size through the layers;
queries are a little larger, so that attention is far from uniform and a wrong mask
or position shows; the head is scaled so that logits spread over several units.
Gemma's embeddings enter the residual stream multiplied by the root of the width:
there the last norm spreads the logits, or a tied head would only repeat its input.
Each tensor's numbers depend on the seed and its name only.
"""

import math
import zlib
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np

from . import vocabulary, vocabulary_kinds
from .tiny_specs import Experts, Gemma4, Latent, TinySpec

CONTEXT = 1024
LOGIT_SPREAD = 2.5  # standard deviation of the logits

# What architectures have.
_HEAD_NORMS = ("qwen3", "qwen3moe", "qwen3vl", "gemma3", "gemma4", "olmo2", "olmoe", "exaone4", "hunyuan-dense", "maincoder")
_ONLY_POST_NORMS = ("olmo2", "exaone4")
_POST_NORMS = ("gemma2", "gemma3", "gemma4", "glm4", *_ONLY_POST_NORMS)
_PARALLEL_BLOCKS = ("command-r", "cohere2")
_NORMS_OF_MEANS = ("starcoder2", "codeshell", "jais2", "nemotron", "stablelm", "orion", "olmo", *_PARALLEL_BLOCKS)
_NO_GATES = ("starcoder2", "codeshell", "jais2", "nemotron", "arcee")


def write_tiny(spec: TinySpec, path: Path) -> list[Path]:
    """Writes `path`, or for a split model its parts beside it; returns the files."""
    tensors = list(_tensors(spec))
    per_part = math.ceil(len(tensors) / spec.n_parts) if spec.n_parts > 1 else 0
    writer = gguf.GGUFWriter(path, spec.arch, split_max_tensors=per_part)
    _write_keys(writer, spec)
    for name, data in tensors:
        # Vectors (norms, biases) stay F32, as every converter leaves them.
        as_half = spec.weight_type == "F16" and data.ndim > 1
        writer.add_tensor(name, data.astype(np.float16) if as_half else data)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return part_paths(spec, path)


def part_paths(spec: TinySpec, path: Path) -> list[Path]:
    """The files that write_tiny(spec, path) makes."""
    if spec.n_parts == 1:
        return [path]
    n = spec.n_parts
    return [path.with_name(f"{path.stem}-{i + 1:05d}-of-{n:05d}.gguf") for i in range(n)]


def _vocabulary(spec: TinySpec) -> vocabulary.Vocabulary:
    if spec.vocabulary:
        return getattr(vocabulary_kinds, spec.vocabulary)()
    if spec.arch == "llama":
        return vocabulary.sentence_piece(spec.chat)
    return vocabulary.gemma() if spec.arch.startswith("gemma") else vocabulary.byte_pairs(spec.infill)


def _write_keys(writer: gguf.GGUFWriter, spec: TinySpec) -> None:
    writer.add_name(spec.name)
    writer.add_description(f"random weights for tests, numpy PCG64, seed {spec.seed}")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32 if spec.weight_type == "F32" else gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(spec.width)
    writer.add_block_count(spec.n_layer)
    writer.add_feed_forward_length(spec.n_ff if not spec.gemma4 else [_of_layer(spec, i).n_ff for i in range(spec.n_layer)])
    writer.add_head_count(spec.n_head)
    writer.add_head_count_kv(spec.n_head_kv if not spec.gemma4 else [_of_layer(spec, i).n_head_kv for i in range(spec.n_layer)])
    if spec.latent:
        _write_latent(writer, spec.latent)
    else:
        writer.add_key_length(spec.head_size)
        writer.add_value_length(spec.head_size)
    if spec.arch in _NORMS_OF_MEANS:
        writer.add_layer_norm_eps(1e-5)
    else:
        writer.add_layer_norm_rms_eps(1e-5 if spec.arch == "llama" else 1e-6)
    if spec.window:
        writer.add_sliding_window(spec.window)
    if isinstance(spec.window_pattern, int):
        writer.add_uint32(f"{spec.arch}.attention.sliding_window_pattern", spec.window_pattern)
    elif spec.window_pattern:
        writer.add_array(f"{spec.arch}.attention.sliding_window_pattern", list(spec.window_pattern))
    if spec.score_softcap:
        writer.add_attn_logit_softcapping(spec.score_softcap)
    if spec.logit_softcap:
        writer.add_final_logit_softcapping(spec.logit_softcap)
    if spec.arch == "llama":
        writer.add_vocab_size(len(_vocabulary(spec).texts))
    if spec.arch == "llama" or spec.rope_dims:
        writer.add_rope_dimension_count(spec.rope_dims or spec.head_size)
    if spec.scales:
        embeddings, scores, blocks, logits = spec.scales
        writer.add_embedding_scale(embeddings)
        if scores:
            writer.add_attention_scale(scores)
        writer.add_residual_scale(blocks)
        writer.add_logit_scale(logits)
    if spec.logit_scale:
        writer.add_logit_scale(spec.logit_scale)
    if spec.temperature:
        writer.add_float32(f"{spec.arch}.attention.temperature_scale", spec.temperature)
    if spec.experts:
        _write_experts(writer, spec, spec.experts)
    if spec.gemma4:
        _write_gemma4(writer, spec, spec.gemma4)
    _write_rope(writer, spec)
    _vocabulary(spec).write(writer)


def _write_latent(writer: gguf.GGUFWriter, latent: Latent) -> None:
    writer.add_key_length(latent.n + latent.n_rotated)
    writer.add_value_length(latent.n)
    writer.add_key_length_mla(latent.n_query + latent.n_rotated)
    writer.add_value_length_mla(latent.n_value)
    writer.add_kv_lora_rank(latent.n)
    writer.add_rope_dimension_count(latent.n_rotated)
    if latent.n_down:
        writer.add_q_lora_rank(latent.n_down)


def _has_experts(spec: TinySpec, layer: int) -> bool:
    experts = spec.experts
    return experts is not None and layer >= experts.n_dense_layers and (layer + 1) % experts.step == 0


def _write_gemma4(writer: gguf.GGUFWriter, spec: TinySpec, kinds: Gemma4) -> None:
    for key in ("attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"):
        writer.add_uint32(f"{spec.arch}.{key}", kinds.window_head_size)
    writer.add_rope_dimension_count(spec.head_size)
    writer.add_uint32(f"{spec.arch}.attention.shared_kv_layers", kinds.n_sharing)
    writer.add_uint32(f"{spec.arch}.embedding_length_per_layer_input", kinds.per_layer)


def _of_layer(spec: TinySpec, layer: int) -> TinySpec:
    """The sizes that a layer has."""
    kinds = spec.gemma4
    if not kinds:
        return spec
    if spec.window_pattern[layer]:
        spec = replace(spec, n_head_kv=kinds.window_head_kv, head_size=kinds.window_head_size)
    return replace(spec, n_ff=2 * spec.n_ff) if layer >= spec.n_layer - kinds.n_sharing else spec


def _write_experts(writer: gguf.GGUFWriter, spec: TinySpec, experts: Experts) -> None:
    writer.add_expert_count(experts.n_all)
    writer.add_expert_used_count(experts.n_used)
    writer.add_expert_feed_forward_length(experts.n_ff)
    if spec.arch in ("glm4moe", "deepseek2"):
        writer.add_expert_shared_count(experts.n_ff_shared // experts.n_ff)
    elif experts.n_ff_shared:
        writer.add_expert_shared_feed_forward_length(experts.n_ff_shared)
    if experts.n_dense_layers:
        writer.add_leading_dense_block_count(experts.n_dense_layers)
    if spec.arch in ("ernie4_5-moe", "llama4"):
        writer.add_interleave_moe_layer_step(experts.step)
    if experts.gating:
        writer.add_uint32(f"{spec.arch}.expert_gating_func", experts.gating)
    if experts.scale:
        writer.add_expert_weights_scale(experts.scale)
    if experts.normalises is not None:
        writer.add_expert_weights_norm(experts.normalises)


def _write_rope(writer: gguf.GGUFWriter, spec: TinySpec) -> None:
    rope = spec.rope
    writer.add_rope_freq_base(rope.base)
    if rope.base_swa:
        writer.add_float32(f"{spec.arch}.rope.freq_base_swa", rope.base_swa)
    if rope.scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope.scaling))
        writer.add_rope_scaling_factor(rope.factor)
    if rope.original_context:
        writer.add_rope_scaling_orig_ctx_len(rope.original_context)
    if rope.log_multiplier:
        writer.add_rope_scaling_yarn_log_mul(rope.log_multiplier)
    if rope.betas:
        writer.add_float32(f"{spec.arch}.rope.scaling.yarn_beta_fast", rope.betas[0])
        writer.add_float32(f"{spec.arch}.rope.scaling.yarn_beta_slow", rope.betas[1])
    if rope.alpha:
        writer.add_float32(f"{spec.arch}.rope.scaling.alpha", rope.alpha)
    if rope.sections:
        writer.add_rope_dimension_sections(rope.sections)


def _tensors(spec: TinySpec):
    """Yields (name, float32 array); a matrix is (rows, row length), as gguf wants it."""
    n_vocab = len(_vocabulary(spec).texts)
    d = spec.width
    last_norm = 4.0 if spec.arch.startswith("gemma") else 1.0
    head_gain = LOGIT_SPREAD / last_norm
    draw = Drawer(spec.seed, spec.arch)

    yield draw.matrix("token_embd.weight", n_vocab, d, head_gain)
    if spec.rope.llama3_factors:
        yield "rope_freqs.weight", _llama3_factors(spec)
    if spec.gemma4:
        yield from _gemma4_tables(draw, spec, n_vocab)
    of_model = spec
    for i in range(spec.n_layer):
        layer = f"blk.{i}"
        spec = _of_layer(of_model, i)
        q_size, kv_size = spec.n_head * spec.head_size, spec.n_head_kv * spec.head_size
        if spec.arch not in _ONLY_POST_NORMS:
            yield from _norm(draw, spec, f"{layer}.attn_norm")
        if spec.latent:
            yield from _latent(draw, spec, layer, spec.latent)
            yield from _norm(draw, spec, f"{layer}.ffn_norm")
            if i >= spec.experts.n_dense_layers:
                yield from _experts(draw, layer, d, spec.experts)
            else:
                yield from _mlp(draw, spec, layer)
            continue
        q = draw.matrix(f"{layer}.attn_q.weight", q_size, d, 1.5)
        k = draw.matrix(f"{layer}.attn_k.weight", kv_size, d)
        v = draw.matrix(f"{layer}.attn_v.weight", kv_size, d)
        biases = [draw.bias(f"{layer}.attn_{x}.bias", n) for x, n in [("q", q_size), ("k", kv_size), ("v", kv_size)]]
        if spec.fused_qkv:
            yield f"{layer}.attn_qkv.weight", np.concatenate([q[1], k[1], v[1]])
        elif spec.gemma4 and i >= spec.n_layer - spec.gemma4.n_sharing:
            yield q
        elif spec.gemma4 and spec.gemma4.reuses_keys and not spec.window_pattern[i]:
            yield from (q, k)
        else:
            yield from (q, k, v)
        if spec.qkv_bias and spec.fused_qkv and not spec.separate_biases:
            yield f"{layer}.attn_qkv.bias", np.concatenate([b[1] for b in biases])
        elif spec.qkv_bias:
            yield from biases
        yield draw.matrix(f"{layer}.attn_output.weight", d, q_size)
        if spec.attn_out_bias:
            yield draw.bias(f"{layer}.attn_output.bias", d)
        if spec.arch == "gpt-oss":
            yield draw.sinks(f"{layer}.attn_sinks.weight", spec.n_head)
        if spec.arch in _HEAD_NORMS:
            of_all = spec.arch in ("olmo2", "olmoe")
            # Nothing else keeps Gemma 4's scores small.
            mean = 1.25 / spec.head_size**0.25 if spec.gemma4 else 1.0
            yield draw.norm(f"{layer}.attn_q_norm.weight", q_size if of_all else spec.head_size, mean)
            yield draw.norm(f"{layer}.attn_k_norm.weight", kv_size if of_all else spec.head_size, mean)
        if spec.arch in _POST_NORMS:
            yield from _norm(draw, spec, f"{layer}.post_attention_norm")
        if spec.arch not in (*_ONLY_POST_NORMS, *_PARALLEL_BLOCKS):
            mlp_norm = "post_attention_norm" if spec.arch in ("seed_oss", "glm4moe", "gpt-oss") else "ffn_norm"
            yield from _norm(draw, spec, f"{layer}.{mlp_norm}")
        if spec.gemma4 and spec.experts:
            yield from _gemma4_experts(draw, spec, layer)
        elif _has_experts(spec, i):
            yield from _experts(draw, layer, d, spec.experts)
        if spec.gemma4 or not _has_experts(spec, i):
            yield from _mlp(draw, spec, layer)
        if spec.arch in _POST_NORMS:
            yield from _norm(draw, spec, f"{layer}.post_ffw_norm")
        if spec.gemma4:
            yield from _gemma4_end(draw, spec, layer)
    spec = of_model
    yield from _norm(draw, spec, "output_norm", last_norm)
    if not spec.tied:
        yield draw.matrix("output.weight", n_vocab, d, head_gain)
    if spec.head_bias:
        yield draw.bias("output.bias", n_vocab)


def _latent(draw: "Drawer", spec: TinySpec, layer: str, latent: Latent):
    n_queries, d = spec.n_head * (latent.n_query + latent.n_rotated), spec.width
    if latent.n_down:
        yield draw.matrix(f"{layer}.attn_q_a.weight", latent.n_down, d)
        yield draw.norm(f"{layer}.attn_q_a_norm.weight", latent.n_down)
        yield draw.matrix(f"{layer}.attn_q_b.weight", n_queries, latent.n_down, 1.5)
    else:
        yield draw.matrix(f"{layer}.attn_q.weight", n_queries, d, 1.5)
    yield draw.matrix(f"{layer}.attn_kv_a_mqa.weight", latent.n + latent.n_rotated, d)
    yield draw.norm(f"{layer}.attn_kv_a_norm.weight", latent.n)
    for name, n_out, n_in in (("k", latent.n, latent.n_query), ("v", latent.n_value, latent.n)):
        of_all, data = draw.matrix(f"{layer}.attn_{name}_b.weight", spec.n_head * n_out, n_in)
        yield of_all, data.reshape(spec.n_head, n_out, n_in)
    yield draw.matrix(f"{layer}.attn_output.weight", d, spec.n_head * latent.n_value)


def _gemma4_tables(draw: "Drawer", spec: TinySpec, n_vocab: int):
    # Half of the pairs of a head do not rotate.
    pairs = spec.head_size // 2
    yield "rope_freqs.weight", np.array([1.0] * (pairs // 2) + [1e30] * (pairs - pairs // 2), dtype=np.float32)
    if n := spec.gemma4.per_layer:
        yield draw.matrix("per_layer_token_embd.weight", n_vocab, n * spec.n_layer, math.sqrt(spec.n_layer))
        yield draw.matrix("per_layer_model_proj.weight", n * spec.n_layer, spec.width)
        yield draw.norm("per_layer_proj_norm.weight", n)


def _gemma4_experts(draw: "Drawer", spec: TinySpec, layer: str):
    """Gates and ups in one matrix, norms and scales of their own."""
    tensors = dict(_experts(draw, layer, spec.width, spec.experts))
    halves = [tensors.pop(f"{layer}.ffn_{half}_exps.weight") for half in ("gate", "up")]
    yield from tensors.items()
    yield f"{layer}.ffn_gate_up_exps.weight", np.concatenate(halves, axis=1)
    yield draw.norm(f"{layer}.ffn_down_exps.scale", spec.experts.n_all)
    # What the router reads is divided by the root of its width.
    yield draw.norm(f"{layer}.ffn_gate_inp.scale", spec.width, math.sqrt(spec.width))
    for norm in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):
        yield from _norm(draw, spec, f"{layer}.{norm}")


def _gemma4_end(draw: "Drawer", spec: TinySpec, layer: str):
    yield draw.norm(f"{layer}.layer_output_scale.weight", 1, 0.7)
    if n := spec.gemma4.per_layer:
        yield draw.matrix(f"{layer}.inp_gate.weight", n, spec.width)
        yield draw.matrix(f"{layer}.proj.weight", spec.width, n)
        yield from _norm(draw, spec, f"{layer}.post_norm")


def _norm(draw: "Drawer", spec: TinySpec, name: str, mean: float = 1.0):
    if spec.arch == "olmo":
        return
    yield draw.norm(f"{name}.weight", spec.width, mean)
    if spec.arch in _NORMS_OF_MEANS and spec.arch not in _PARALLEL_BLOCKS:
        yield draw.bias(f"{name}.bias", spec.width)


def _mlp(draw: "Drawer", spec: TinySpec, layer: str):
    halves = ("up",) if spec.arch in _NO_GATES else ("gate", "up")
    matrices = [draw.matrix(f"{layer}.ffn_{half}.weight", spec.n_ff, spec.width) for half in halves]
    yield from [(matrices[1][0], np.concatenate([m[1] for m in matrices]))] if spec.fused_mlp else matrices
    yield draw.matrix(f"{layer}.ffn_down.weight", spec.width, spec.n_ff)
    if spec.mlp_bias:
        yield from (draw.bias(f"{layer}.ffn_{half}.bias", spec.n_ff) for half in halves)
        yield draw.bias(f"{layer}.ffn_down.bias", spec.width)


def _experts(draw: "Drawer", layer: str, width: int, experts: Experts):
    # Sure of its choice, as trained ones are.
    yield draw.matrix(f"{layer}.ffn_gate_inp.weight", experts.n_all, width, 4.0)
    if experts.has_biases:
        yield draw.bias(f"{layer}.ffn_gate_inp.bias", experts.n_all)
    if experts.has_preference:
        yield draw.bias(f"{layer}.exp_probs_b.bias", experts.n_all)
    for name, n_out, n_in in (("gate", experts.n_ff, width), ("up", experts.n_ff, width), ("down", width, experts.n_ff)):
        # What gates and ups have too much of is taken back.
        gain = 1 / experts.gain**2 if name == "down" else experts.gain
        of_all, data = draw.matrix(f"{layer}.ffn_{name}_exps.weight", experts.n_all * n_out, n_in, gain)
        yield of_all, data.reshape(experts.n_all, n_out, n_in)
        if experts.has_biases:
            of_all, data = draw.bias(f"{layer}.ffn_{name}_exps.bias", experts.n_all * n_out)
            yield of_all, data.reshape(experts.n_all, n_out)
    if not experts.n_ff_shared:
        return
    n = experts.n_ff_shared
    for name, n_out, n_in in (("gate", n, width), ("up", n, width), ("down", width, n)):
        yield draw.matrix(f"{layer}.ffn_{name}_shexp.weight", n_out, n_in)
    if experts.has_share:
        yield draw.bias(f"{layer}.ffn_gate_inp_shexp.weight", width)


class Drawer:
    def __init__(self, seed: int, arch: str):
        self._key = [seed, zlib.crc32(arch.encode())]

    def _normal(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        seeds = np.random.SeedSequence([*self._key, zlib.crc32(name.encode())])
        return np.random.Generator(np.random.PCG64(seeds)).standard_normal(shape, dtype=np.float32)

    def matrix(self, name: str, n_rows: int, row_length: int, gain: float = 1.0):
        return name, self._normal(name, (n_rows, row_length)) * np.float32(gain / math.sqrt(row_length))

    def norm(self, name: str, n: int, mean: float = 1.0):
        return name, np.float32(mean) * (1 + np.float32(0.1) * self._normal(name, (n,)))

    def sinks(self, name: str, n: int):
        """As large as what a few dozen scores of a tiny model sum up to, or less."""
        return name, 3 + np.float32(1.5) * self._normal(name, (n,))

    def bias(self, name: str, n: int):
        return name, np.float32(0.3) * self._normal(name, (n,))


def _llama3_factors(spec: TinySpec) -> np.ndarray:
    """Llama 3's division of the frequencies: high ones as they are, low ones by 8, a ramp between.

    The original context is set so low that all three kinds occur.
    """
    factor, low, high, original_context = 8.0, 1.0, 4.0, 64.0
    exponents = np.arange(0, spec.head_size, 2) / spec.head_size
    wavelengths = 2 * math.pi * spec.rope.base**exponents
    smooth = np.clip((original_context / wavelengths - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1 - smooth) / factor + smooth)).astype(np.float32)
