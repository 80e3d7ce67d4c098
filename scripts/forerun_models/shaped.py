"""random-<shape>-<type>: random weights of a big model's shape, to measure speed with.

What a pass costs depends on the shapes and types of the weights, not on their values.
Blocks of quantised types are therefore random bits with scales put in, not floats
that a quantiser saw: weights have mean 0 and standard deviation 1 / sqrt(row length),
activations keep their size, logits are finite and differ. Norms are ones.

As in files that llama.cpp makes, the head (of a tied model, the embedding) is Q6_K
where the other matrices have fewer bits, and rows that are no multiple of 256 are
Q5_0 in place of Q4_K and Q8_0 in place of Q6_K. Llama 3's rope factors are left out.

Also a program of its own, for a machine without the scripts' environment:

    python3 scripts/forerun_models/shaped.py NAME OUT.gguf

needs numpy and the gguf package on PYTHONPATH, and no network.
"""

import functools
import importlib.util
import math
import os
import statistics
import sys
import types
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # where the package lies
    if not importlib.util.find_spec("yaml"):
        # gguf imports it for model cards, which nothing here reads.
        sys.modules["yaml"] = types.ModuleType("yaml")

import gguf
import numpy as np

from forerun_models import vocabulary
from forerun_models.errors import SetupError

Type = gguf.GGMLQuantizationType

SEED = 1
_CHUNK = 1 << 20  # weights that one random stream gives; a multiple of every block
_LOOKUP = 1 << 16  # weights looked up at once: what they need stays in the cache
_BIAS_SPREAD = 0.1


@dataclass(frozen=True)
class Latent:
    """Attention with latent numbers."""

    n: int
    n_rotated: int
    n_query: int
    n_value: int
    n_down: int


@dataclass(frozen=True)
class Shape:
    title: str
    arch: str
    n_layer: int
    width: int
    n_ff: int
    n_head: int
    n_head_kv: int
    head_size: int
    n_vocab: int
    n_ctx: int
    rope_base: float
    tied: bool = True
    qkv_bias: bool = False
    is_fused: bool = False  # one matrix for queries, keys and values, and one for gates and ups
    eps: float = 1e-5
    n_experts: int = 0  # each of them with n_ff
    n_used: int = 0
    n_ff_dense: int = 0  # of the first layer, which has one MLP, where it has; the others have an expert that all tokens use
    latent: Latent | None = None
    per_layer: int = 0  # Gemma 4's small models: numbers of each token that a layer has for itself,
    n_sharing: int = 0  # layers at the end without keys and values, with MLPs twice as wide,
    window_head_size: int = 0  # and heads of four layers of five


SHAPES = {
    "llama-8b": Shape("Llama 3.1 8B", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 500000.0, tied=False),
    "llama-1b": Shape("Llama 3.2 1B", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 500000.0),
    "qwen2-1.5b": Shape("Qwen2 1.5B", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, 32768, 1e6, qkv_bias=True, eps=1e-6),
    # A quarter of its layers: as large as most machines have memory for.
    "qwen3-30b-a3b-quarter": Shape("Qwen3 30B-A3B, 12 layers", "qwen3moe", 12, 2048, 768, 32, 4, 128, 151936, 32768, 1e6, tied=False, eps=1e-6, n_experts=128, n_used=8),
    "glm-4.7-flash-quarter": Shape(
        "GLM 4.7 Flash, 12 layers", "deepseek2", 12, 2048, 1536, 20, 1, 576, 154880, 202752, 1e6, tied=False, n_experts=64, n_used=4,
        n_ff_dense=10240, latent=Latent(512, 64, 192, 256, 768),
    ),
    # Blocks of smaller models' shapes, as many as make 1.5 billion weights.
    "phi4-1.5b": Shape("Phi 4 mini, 9 layers", "phi3", 9, 3072, 8192, 24, 8, 128, 200064, 131072, 10000.0, is_fused=True),
    "gemma2-1.5b": Shape("Gemma 2 2B, 12 layers", "gemma2", 12, 2304, 9216, 8, 4, 256, 256000, 8192, 10000.0, eps=1e-6),
    "qwen3-1.5b": Shape("Qwen3 1.7B, 24 layers", "qwen3", 24, 2048, 6144, 16, 8, 128, 151936, 40960, 1e6, eps=1e-6),
    "gemma4-e2b": Shape(
        "Gemma 4 E2B", "gemma4", 35, 1536, 6144, 8, 1, 512, 262144, 131072, 1e6, eps=1e-6, per_layer=256, n_sharing=20, window_head_size=256,
    ),
    "smollm2-135m": Shape("SmolLM2 135M", "llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, 100000.0),
}

# By the name's ending; the file type is what general.file_type says.
_FILE_TYPES = {
    "f32": gguf.LlamaFileType.ALL_F32,
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "bf16": gguf.LlamaFileType.MOSTLY_BF16,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
    "q4_1": gguf.LlamaFileType.MOSTLY_Q4_1,
    "q5_0": gguf.LlamaFileType.MOSTLY_Q5_0,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q4_k": gguf.LlamaFileType.MOSTLY_Q4_K_S,
    "q6_k": gguf.LlamaFileType.MOSTLY_Q6_K,
}
TYPES = tuple(_FILE_TYPES)

_UNDER_SIX_BITS = (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q4_K)
_SMALLER_BLOCKS = {Type.Q4_K: Type.Q5_0, Type.Q6_K: Type.Q8_0}


@dataclass(frozen=True)
class ShapedSpec:
    name: str
    shape: Shape
    weight_type: str  # one of TYPES

    def n_bytes(self) -> int:
        """Of all tensors."""
        return sum(t.n_bytes() for t in _tensors(self))


def shaped_specs() -> list[ShapedSpec]:
    return [ShapedSpec(f"random-{name}-{t}", shape, t) for name, shape in SHAPES.items() for t in TYPES]


def write_shaped(spec: ShapedSpec, path: Path) -> None:
    """The same bytes in every run. Holds a few MB per core in memory."""
    tensors = _tensors(spec)
    writer = gguf.GGUFWriter(path, spec.shape.arch)
    _write_keys(writer, spec)
    for t in tensors:
        writer.add_tensor_info(t.name, t.shape, np.dtype(np.float32), t.n_bytes(), raw_dtype=t.type)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()

    n_threads = os.cpu_count() or 1
    with open(path, "ab") as file, ThreadPoolExecutor(n_threads) as pool:
        pending = deque()
        for t, start in _pieces(tensors):
            if len(pending) == 2 * n_threads:
                _append(file, *pending.popleft())
            pending.append((pool.submit(_piece, t, start), start == 0))
        while pending:
            _append(file, *pending.popleft())


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]  # (rows, row length), before it the number of such matrices, or (length,)
    type: Type
    spread: float  # standard deviation; 0 for ones

    def n_weights(self) -> int:
        return math.prod(self.shape)

    def n_bytes(self) -> int:
        block, block_bytes = gguf.GGML_QUANT_SIZES[self.type]
        return self.n_weights() // block * block_bytes


def _write_keys(writer: gguf.GGUFWriter, spec: ShapedSpec) -> None:
    shape = spec.shape
    writer.add_name(spec.name)
    writer.add_description(f"random weights of the shape of {shape.title}, numpy SFC64, seed {SEED}")
    writer.add_file_type(_FILE_TYPES[spec.weight_type])
    writer.add_context_length(shape.n_ctx)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.n_layer)
    writer.add_feed_forward_length((shape.n_ff_dense or shape.n_ff) if not shape.n_sharing else [_n_ff(shape, i) for i in range(shape.n_layer)])
    writer.add_head_count(shape.n_head)
    writer.add_head_count_kv(shape.n_head_kv)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.latent.n if shape.latent else shape.head_size)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_vocab_size(shape.n_vocab)
    writer.add_rope_dimension_count(shape.latent.n_rotated if shape.latent else shape.head_size)
    writer.add_rope_freq_base(shape.rope_base)
    if shape.arch == "gemma2":
        writer.add_sliding_window(4096)
        writer.add_attn_logit_softcapping(50.0)
        writer.add_final_logit_softcapping(30.0)
    if shape.arch == "gemma4":
        for key in ("attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"):
            writer.add_uint32(f"gemma4.{key}", shape.window_head_size)
        writer.add_float32("gemma4.rope.freq_base_swa", 10000.0)
        writer.add_sliding_window(512)
        writer.add_array("gemma4.attention.sliding_window_pattern", [_is_windowed(shape, i) for i in range(shape.n_layer)])
        writer.add_uint32("gemma4.attention.shared_kv_layers", shape.n_sharing)
        writer.add_uint32("gemma4.embedding_length_per_layer_input", shape.per_layer)
        writer.add_final_logit_softcapping(30.0)
    if shape.n_experts:
        writer.add_expert_count(shape.n_experts)
        writer.add_expert_used_count(shape.n_used)
        writer.add_expert_feed_forward_length(shape.n_ff)
    if shape.n_ff_dense:
        writer.add_leading_dense_block_count(1)
        writer.add_expert_shared_count(1)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        writer.add_expert_weights_norm(True)
    if latent := shape.latent:
        writer.add_key_length_mla(latent.n_query + latent.n_rotated)
        writer.add_value_length_mla(latent.n_value)
        writer.add_kv_lora_rank(latent.n)
        writer.add_q_lora_rank(latent.n_down)
    _vocabulary(shape.n_vocab).write(writer)


def _is_windowed(shape: Shape, layer: int) -> bool:
    return shape.window_head_size > 0 and layer % 5 != 4


def _n_ff(shape: Shape, layer: int) -> int:
    return shape.n_ff * 2 if layer >= shape.n_layer - shape.n_sharing else shape.n_ff


def _vocabulary(n_tokens: int) -> vocabulary.Vocabulary:
    """The tiny models' byte pairs, which any text becomes, filled up with words that no merge makes."""
    v = vocabulary.byte_pairs()
    space = v.texts[ord(" ")].decode()
    words = [f"{space}w{i}".encode() for i in range(len(v.texts), n_tokens)]
    v.texts += words
    v.types += [int(gguf.TokenType.NORMAL)] * len(words)
    return v


def _tensors(spec: ShapedSpec) -> list[_Tensor]:
    shape = spec.shape
    main = Type[spec.weight_type.upper()]
    head = Type.Q6_K if main in _UNDER_SIX_BITS else main
    d = shape.width

    def matrix(name: str, n_rows: int, row: int, type_: Type = main) -> _Tensor:
        if row % gguf.GGML_QUANT_SIZES[type_][0] != 0:
            type_ = _SMALLER_BLOCKS[type_]
        return _Tensor(f"{name}.weight", (n_rows, row), type_, 1 / math.sqrt(row))

    def stack(name: str, n_rows: int, row: int, n: int = shape.n_experts) -> _Tensor:
        return replace(matrix(name, n_rows, row), shape=(n, n_rows, row))

    def vector(name: str, n: int, spread: float = 0) -> _Tensor:
        return _Tensor(name, (n,), Type.F32, spread)

    result = [matrix("token_embd", shape.n_vocab, d, head if shape.tied else main)]
    if shape.per_layer:
        n = shape.per_layer * shape.n_layer
        result += [matrix("per_layer_token_embd", shape.n_vocab, n), matrix("per_layer_model_proj", n, d), vector("per_layer_proj_norm.weight", shape.per_layer)]
    if shape.arch == "gemma4":
        result.append(vector("rope_freqs.weight", shape.head_size // 2))
    for i in range(shape.n_layer):
        layer = f"blk.{i}"
        result.append(vector(f"{layer}.attn_norm.weight", d))
        head_size = shape.window_head_size if _is_windowed(shape, i) else shape.head_size
        q, kv, n_ff = shape.n_head * head_size, shape.n_head_kv * head_size, _n_ff(shape, i)
        queries = [("attn_qkv", q + 2 * kv)] if shape.is_fused else [("attn_q", q), ("attn_k", kv), ("attn_v", kv)]
        if shape.n_sharing and i >= shape.n_layer - shape.n_sharing:
            queries = queries[:1]
        n_read = q
        if latent := shape.latent:
            down = [("attn_q_a", latent.n_down), ("attn_kv_a_mqa", latent.n + latent.n_rotated)]
            result += [matrix(f"{layer}.{name}", n, d) for name, n in down]
            result += [vector(f"{layer}.attn_q_a_norm.weight", latent.n_down), vector(f"{layer}.attn_kv_a_norm.weight", latent.n)]
            result.append(matrix(f"{layer}.attn_q_b", shape.n_head * (latent.n_query + latent.n_rotated), latent.n_down))
            result.append(stack(f"{layer}.attn_k_b", latent.n, latent.n_query, shape.n_head))
            result.append(stack(f"{layer}.attn_v_b", latent.n_value, latent.n, shape.n_head))
            queries, n_read = [], shape.n_head * latent.n_value
        for name, n in queries:
            result.append(matrix(f"{layer}.{name}", n, d))
            if shape.qkv_bias:
                result.append(vector(f"{layer}.{name}.bias", n, _BIAS_SPREAD))
        if shape.arch in ("qwen3", "qwen3moe", "gemma4"):
            result += [vector(f"{layer}.attn_{x}_norm.weight", head_size) for x in ("q", "k")]
        result.append(matrix(f"{layer}.attn_output", d, n_read))
        result.append(vector(f"{layer}.ffn_norm.weight", d))
        has_experts = shape.n_experts and (i > 0 or not shape.n_ff_dense)
        ending, mlp = ("_exps", stack) if has_experts else ("", matrix)
        n_ff = n_ff if has_experts else shape.n_ff_dense or n_ff
        if has_experts and shape.n_ff_dense:
            result += [matrix(f"{layer}.ffn_{name}_shexp", n_ff, d) for name in ("gate", "up")]
            result.append(matrix(f"{layer}.ffn_down_shexp", d, n_ff))
        if has_experts:
            result.append(matrix(f"{layer}.ffn_gate_inp", shape.n_experts, d, Type.F32))
        ups = ["ffn_up"] if shape.is_fused else ["ffn_gate", "ffn_up"]
        result += [mlp(f"{layer}.{name}{ending}", n_ff * 2 // len(ups), d) for name in ups]
        result.append(mlp(f"{layer}.ffn_down{ending}", d, n_ff))
        if shape.arch in ("gemma2", "gemma4"):
            result += [vector(f"{layer}.post_{x}_norm.weight", d) for x in ("attention", "ffw")]
        if shape.per_layer:
            result += [matrix(f"{layer}.inp_gate", shape.per_layer, d), matrix(f"{layer}.proj", d, shape.per_layer)]
            result += [vector(f"{layer}.post_norm.weight", d), vector(f"{layer}.layer_output_scale.weight", 1)]
    result.append(vector("output_norm.weight", d))
    if not shape.tied:
        result.append(matrix("output", shape.n_vocab, d, head))
    return result


def _pieces(tensors: list[_Tensor]) -> Iterator[tuple[_Tensor, int]]:
    """Every tensor's pieces in the file's order, each by the weight it starts with."""
    for t in tensors:
        for start in range(0, t.n_weights(), _CHUNK):
            yield t, start


def _append(file, piece, starts_tensor: bool) -> None:
    if starts_tensor:
        file.write(bytes(-file.tell() % gguf.GGUF_DEFAULT_ALIGNMENT))
    file.write(piece.result())


def _piece(t: _Tensor, start: int) -> np.ndarray:
    """Up to _CHUNK weights of the tensor, as the file holds them."""
    n = min(_CHUNK, t.n_weights() - start)
    if t.spread == 0:
        return np.ones(n, np.float32)
    seeds = np.random.SeedSequence([SEED, zlib.crc32(t.name.encode()), start])
    random = np.random.SFC64(seeds)
    if t.type in (Type.F32, Type.F16, Type.BF16):
        return _floats(random, n, _normal_table(t.type, t.spread))
    block, block_bytes = gguf.GGML_QUANT_SIZES[t.type]
    n_blocks = n // block
    blocks = _bits(random, n_blocks * block_bytes).reshape(n_blocks, block_bytes)
    _put_scales(blocks, t.type, t.spread)
    return blocks


def _bits(random: np.random.SFC64, n_bytes: int) -> np.ndarray:
    return random.random_raw(-(-n_bytes // 8)).view(np.uint8)[:n_bytes]


def _floats(random: np.random.SFC64, n: int, table: np.ndarray) -> np.ndarray:
    indices = _bits(random, 2 * n).view(np.uint16)
    result = np.empty(n, table.dtype)
    for i in range(0, n, _LOOKUP):
        # Every index is in the table; without "clip" numpy would check and copy.
        np.take(table, indices[i : i + _LOOKUP], out=result[i : i + _LOOKUP], mode="clip")
    return result


@functools.cache
def _normal_table(type_: Type, spread: float) -> np.ndarray:
    """65,536 values of the type that are equally likely in a normal distribution."""
    values = (_normal_quantiles() * spread).astype(np.float32)
    if type_ == Type.BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16) if type_ == Type.F16 else values


@functools.cache
def _normal_quantiles() -> np.ndarray:
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / 65536) for i in range(65536)])


def _uniform_rms(n_levels: int) -> float:
    """Of 0 to n_levels - 1 around n_levels / 2, which is a half more than their mean."""
    return math.sqrt((n_levels**2 - 1) / 12 + 0.25)


# Where a block has its only float, and the root mean square of what that multiplies:
# the weights' numbers, in Q6_K times the random scales of its parts.
_SIGNED_SCALES = {
    Type.Q4_0: (0, _uniform_rms(16)),
    Type.Q5_0: (0, _uniform_rms(32)),
    Type.Q8_0: (0, _uniform_rms(256)),
    Type.Q6_K: (208, _uniform_rms(64) * _uniform_rms(256)),
}


def _put_scales(blocks: np.ndarray, type_: Type, spread: float) -> None:
    """Makes blocks (n, bytes) of random bits into weights of that standard deviation."""
    halves = blocks.view(np.uint16)
    if type_ in _SIGNED_SCALES:
        # The scale keeps its random sign, so that the mean is 0.
        place, rms = _SIGNED_SCALES[type_]
        scale = halves[:, place // 2]
        scale &= 0x8000
        scale |= _half(spread / rms)
        return
    step = spread / math.sqrt((16**2 - 1) / 12)  # between numbers 0 to 15, of mean 7.5
    if type_ == Type.Q4_1:
        halves[:, 0] = _half(step)
        halves[:, 1] = _half(-7.5 * step)
        return
    # Q4_K: eight parts with a scale and a minimum of 6 bits each, here the same number.
    # Bytes 4 to 7 are four scales and the top bits of the other four, 8 to 11 the same
    # of the minimums; 12 to 15 are the low bits of both.
    step /= math.sqrt(63 * 127 / 6)  # the root mean square of 0 to 63
    halves[:, 0] = _half(step)
    halves[:, 1] = _half(7.5 * step)
    blocks[:, 8:12] = blocks[:, 4:8]
    low = blocks[:, 12:16]
    low &= 15
    low |= low << 4


def _half(value: float) -> np.uint16:
    return np.float16(value).view(np.uint16)


def _find(name: str) -> ShapedSpec:
    for spec in shaped_specs():
        if spec.name == name:
            return spec
    raise SetupError(
        f"no model is called '{name}': give random-SHAPE-TYPE with a shape of {', '.join(SHAPES)} "
        f"and a type of {', '.join(TYPES)}"
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: shaped.py NAME OUT.gguf", file=sys.stderr)
        return 2
    path = Path(arguments[1])
    partial = path.with_name(f".partial-{path.name}")
    try:
        spec = _find(arguments[0])
        try:
            write_shaped(spec, partial)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except SetupError as error:
        print(f"forerun: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"forerun: {path}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
