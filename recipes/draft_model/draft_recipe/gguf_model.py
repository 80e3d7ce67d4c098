"""Reads a llama-architecture GGUF into arrays, and writes the student as one.

The student's file has the teacher's tokenizer and rope keys, so that every program takes
its tokens for the teacher's.
"""

from pathlib import Path

import gguf
import numpy as np
from forerun_models.errors import SetupError
from forerun_models.gguf_copy import Source, Tensor, stored_type, write_tensors

from .shape import LAYER_MATRICES, LAYER_NORMS, Shape

WEIGHT_TYPE = gguf.GGMLQuantizationType.Q4_0


def open_model(path: Path) -> Source:
    try:
        source = Source(path)
    except (OSError, ValueError) as error:
        raise SetupError(f"cannot read {path} as a GGUF ({error}): give the path of the teacher's file") from None
    if source.value("general.architecture") != "llama" or "output.weight" in source.tensors:
        raise SetupError(f"{path} is no llama model with tied embeddings: this recipe is for those only")
    return source


def model_shape(source: Source) -> Shape:
    return Shape(
        n_layer=source.arch_value("block_count"),
        width=source.arch_value("embedding_length"),
        n_ff=source.arch_value("feed_forward_length"),
        n_head=source.arch_value("attention.head_count"),
        n_head_kv=source.arch_value("attention.head_count_kv"),
        head_size=source.arch_value("rope.dimension_count"),
        n_vocab=int(source.tensors["token_embd.weight"].shape[1]),
        rope_base=source.arch_value("rope.freq_base"),
        eps=source.arch_value("attention.layer_norm_rms_epsilon"),
    )


def model_weights(source: Source, shape: Shape) -> dict[str, np.ndarray]:
    """float32, by the names of Shape.sizes()."""
    weights = {name: source.floats(f"{name}.weight") for name in ("token_embd", "output_norm")}
    for name in LAYER_MATRICES + LAYER_NORMS:
        layers = [source.floats(f"blk.{i}.{name}.weight") for i in range(shape.n_layer)]
        weights[name] = np.stack(layers)
    for name, size in shape.sizes().items():
        if weights[name].shape != size:
            raise SetupError(f"the tensor {name} of the model has an unknown shape: this recipe cannot use it")
    return weights


def write_model(path: Path, teacher: Source, shape: Shape, weights: dict[str, np.ndarray], name: str) -> None:
    """`weights`: float32; matrices are stored as WEIGHT_TYPE, vectors as they are."""
    writer = gguf.GGUFWriter(path, "llama")
    teacher.copy_keys(writer, _changed_keys(shape, name))
    arrays = {"token_embd.weight": weights["token_embd"], "output_norm.weight": weights["output_norm"]}
    for i in range(shape.n_layer):
        for kind in LAYER_NORMS + LAYER_MATRICES:
            arrays[f"blk.{i}.{kind}.weight"] = weights[kind][i]
    tensors = [
        Tensor(n, a.shape, stored_type(a.shape, WEIGHT_TYPE), lambda a=a: np.ascontiguousarray(a))
        for n, a in arrays.items()
    ]
    write_tensors(writer, path, tensors)


def _changed_keys(shape: Shape, name: str) -> dict:
    n_params = sum(int(np.prod(size)) for size in shape.sizes().values())
    return {
        "general.name": name,
        "general.basename": name,
        "general.finetune": None,
        "general.organization": None,
        "general.size_label": f"{n_params / 1e6:.0f}M",
        "general.file_type": int(gguf.LlamaFileType.MOSTLY_Q4_0),
        "llama.block_count": shape.n_layer,
        "llama.embedding_length": shape.width,
        "llama.feed_forward_length": shape.n_ff,
        "llama.attention.head_count": shape.n_head,
        "llama.attention.head_count_kv": shape.n_head_kv,
        "llama.attention.key_length": shape.head_size,
        "llama.attention.value_length": shape.head_size,
        "llama.rope.dimension_count": shape.head_size,
    }
