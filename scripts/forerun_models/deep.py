"""smollm2-deep: a model with redundant blocks at known places.

Large models have blocks that hardly change the residual stream; small ones have
none, so nothing small can show layer skipping. Here each layer is followed by 0 to
6 copies of itself whose attention and MLP outputs are scaled down to almost
nothing. Which blocks those are is written into the file.
"""

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from .gguf_copy import Source, Tensor, stored_type, write_tensors

_MOST_COPIES = 6
_SMALLEST, _LARGEST = 0.01, 0.05
_TYPE = gguf.GGMLQuantizationType.Q8_0


@dataclass(frozen=True)
class Layer:
    source: int  # layer of the original model
    attn_factor: float = 1.0  # of the attention's output projection
    mlp_factor: float = 1.0

    def is_planted(self) -> bool:
        return self.attn_factor != 1.0


def plan_layers(n_layer: int, seed: int) -> list[Layer]:
    """The layers of the deep model, in order: every original, each followed by its copies."""
    random = np.random.Generator(np.random.PCG64(seed))
    layers = []
    for i in range(n_layer):
        layers.append(Layer(i))
        for _ in range(random.integers(0, _MOST_COPIES + 1)):
            attn, mlp = np.exp(random.uniform(np.log(_SMALLEST), np.log(_LARGEST), 2))
            layers.append(Layer(i, float(attn), float(mlp)))
    return layers


def make_deep(source_path: Path, path: Path, seed: int) -> None:
    source = Source(source_path)
    layers = plan_layers(source.arch_value("block_count"), seed)
    arch = source.value("general.architecture")
    writer = gguf.GGUFWriter(path, arch)
    source.copy_keys(
        writer,
        {
            f"{arch}.block_count": len(layers),
            "general.name": "smollm2-deep",
            "general.file_type": int(gguf.LlamaFileType.MOSTLY_Q8_0),
            "general.size_label": None,
            "general.description": None,
        },
    )
    planted = [i for i, layer in enumerate(layers) if layer.is_planted()]
    writer.add_description(f"derived from smollm2: {len(planted)} scaled copies of its layers, numpy PCG64, seed {seed}")
    # Block 2 * layer is the layer's attention, 2 * layer + 1 its MLP.
    writer.add_uint32("forerun.seed", seed)
    writer.add_array("forerun.planted_blocks", [2 * i + half for i in planted for half in (0, 1)])
    writer.add_array(
        "forerun.planted_factors", [f for i in planted for f in (layers[i].attn_factor, layers[i].mlp_factor)]
    )
    write_tensors(writer, path, _tensors(source, layers))


def _tensors(source: Source, layers: list[Layer]) -> list[Tensor]:
    def tensor(name: str, original: str, factor: float) -> Tensor:
        shape = tuple(int(n) for n in reversed(source.tensors[original].shape))
        kind = stored_type(shape, _TYPE)
        return Tensor(name, shape, kind, lambda: source.floats(original) * np.float32(factor), key=(original, factor))

    result = [tensor(name, name, 1.0) for name in source.tensors if not name.startswith("blk.")]
    for i, layer in enumerate(layers):
        factors = {"attn_output.weight": layer.attn_factor, "ffn_down.weight": layer.mlp_factor}
        prefix = f"blk.{layer.source}."
        for name in source.tensors:
            if name.startswith(prefix):
                suffix = name.removeprefix(prefix)
                result.append(tensor(f"blk.{i}.{suffix}", name, factors.get(suffix, 1.0)))
    return result
