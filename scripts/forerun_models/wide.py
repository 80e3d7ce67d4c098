"""smollm2-wide: smollm2's text at the cost of a model with billions of parameters.

Every matrix is padded with zeros to a larger width, more heads and a larger MLP, and
layers whose output projections are zero are added at the end. The logits stay what
they were: RMS norms see a mean square that is smaller by d / d', so their weights
are multiplied by sqrt(d / d') and epsilon by d / d'. New query heads come after the
old ones in groups of the old size, so old heads keep their keys and values.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from .errors import SetupError
from .gguf_copy import Source, Tensor, stored_type, write_tensors

TYPES = {"f16": gguf.GGMLQuantizationType.F16, "q8_0": gguf.GGMLQuantizationType.Q8_0}
_MOST_LAYERS = 40  # large models are wide rather than deep


@dataclass(frozen=True)
class Shape:
    width: int
    n_layer: int
    n_ff: int
    n_head: int
    n_head_kv: int
    head_size: int
    n_vocab: int

    def n_params(self) -> int:
        attention = 2 * self.width * (self.n_head + self.n_head_kv) * self.head_size
        return self.n_layer * (attention + 3 * self.width * self.n_ff) + self.n_vocab * self.width


def source_shape(source: Source) -> Shape:
    head_size = source.arch_value("rope.dimension_count")
    return Shape(
        width=source.arch_value("embedding_length"),
        n_layer=source.arch_value("block_count"),
        n_ff=source.arch_value("feed_forward_length"),
        n_head=source.arch_value("attention.head_count"),
        n_head_kv=source.arch_value("attention.head_count_kv"),
        head_size=head_size,
        n_vocab=int(source.tensors["token_embd.weight"].shape[1]),
    )


def widened(old: Shape, width: int, n_layer: int) -> Shape:
    """The shape of `old` at that width. Throws SetupError when the width does not suit its heads."""
    group = old.n_head // old.n_head_kv
    step = group * old.head_size
    if width < max(old.width, old.n_head * old.head_size) or width % step != 0:
        raise SetupError(f"--width {width}: give a multiple of {step} that is at least {old.width}")
    if n_layer < old.n_layer:
        raise SetupError(f"--layers {n_layer}: the model has {old.n_layer} already; give at least that")
    n_head = width // old.head_size
    n_ff = max(old.n_ff, math.ceil(width * 8 / 3 / 256) * 256)
    return Shape(width, n_layer, n_ff, n_head, n_head // group, old.head_size, old.n_vocab)


def shape_for(old: Shape, n_params: float) -> Shape:
    """The narrowest shape of about that many parameters with no more than 40 layers."""
    step = old.n_head // old.n_head_kv * old.head_size
    width = math.ceil(max(old.width, old.n_head * old.head_size) / step) * step
    while True:
        one, two = (widened(old, width, old.n_layer + i).n_params() for i in (0, 1))
        n_layer = old.n_layer + round((n_params - one) / (two - one))
        if n_layer <= max(_MOST_LAYERS, old.n_layer):
            return widened(old, width, max(n_layer, old.n_layer))
        width += step


def make_wide(source_path: Path, path: Path, new: Shape, weight_type: str) -> None:
    source = Source(source_path)
    old = source_shape(source)
    arch = source.value("general.architecture")
    shrink = old.width / new.width  # of the mean square
    file_type = {"f16": gguf.LlamaFileType.MOSTLY_F16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}[weight_type]
    writer = gguf.GGUFWriter(path, arch)
    source.copy_keys(
        writer,
        {
            "general.name": "smollm2-wide",
            "general.file_type": int(file_type),
            "general.size_label": None,
            "general.description": None,
            f"{arch}.block_count": new.n_layer,
            f"{arch}.embedding_length": new.width,
            f"{arch}.feed_forward_length": new.n_ff,
            f"{arch}.attention.head_count": new.n_head,
            f"{arch}.attention.head_count_kv": new.n_head_kv,
            f"{arch}.attention.layer_norm_rms_epsilon": source.arch_value("attention.layer_norm_rms_epsilon") * shrink,
        },
    )
    writer.add_description(
        f"derived from smollm2: zero-padded to width {new.width} and {new.n_layer} layers, "
        f"{new.n_params() / 1e9:.2f}B parameters"
    )
    write_tensors(writer, path, _tensors(source, old, new, TYPES[weight_type]))


def _tensors(source: Source, old: Shape, new: Shape, matrix_type) -> list[Tensor]:
    norm_factor = np.float32(math.sqrt(old.width / new.width))
    q, kv = new.n_head * new.head_size, new.n_head_kv * new.head_size
    layer_shapes = {
        "attn_norm.weight": (new.width,),
        "attn_q.weight": (q, new.width),
        "attn_k.weight": (kv, new.width),
        "attn_v.weight": (kv, new.width),
        "attn_output.weight": (new.width, q),
        "ffn_norm.weight": (new.width,),
        "ffn_gate.weight": (new.n_ff, new.width),
        "ffn_up.weight": (new.n_ff, new.width),
        "ffn_down.weight": (new.width, new.n_ff),
    }

    def padded(name: str, original: str, shape: tuple[int, ...], zero: bool = False) -> Tensor:
        def make() -> np.ndarray:
            result = np.zeros(shape, np.float32)
            if not zero:
                values = source.floats(original)
                result[tuple(slice(n) for n in values.shape)] = values * norm_factor if values.ndim == 1 else values
            return result

        return Tensor(name, shape, stored_type(shape, matrix_type), make)

    result = [
        padded("token_embd.weight", "token_embd.weight", (new.n_vocab, new.width)),
        padded("output_norm.weight", "output_norm.weight", (new.width,)),
    ]
    if "output.weight" in source.tensors:
        result.append(padded("output.weight", "output.weight", (new.n_vocab, new.width)))
    for i in range(new.n_layer):
        is_added = i >= old.n_layer
        for suffix, shape in layer_shapes.items():
            zero = is_added and suffix in ("attn_output.weight", "ffn_down.weight")
            result.append(padded(f"blk.{i}.{suffix}", f"blk.{i % old.n_layer}.{suffix}", shape, zero))
    return result
