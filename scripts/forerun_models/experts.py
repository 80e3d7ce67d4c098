"""smollm2-experts: SmolLM2's text from a mixture of experts.

Each MLP is cut into slices, and of all slices there are several copies. The router takes the slices of
one copy, by the direction of the state, which is as good as any other: so the mixture computes what the
MLP does, while tokens touch different experts, as those of trained mixtures do.
"""

from pathlib import Path

import gguf
import numpy as np

from .gguf_copy import Source, Tensor, stored_type, write_tensors

SLICES, COPIES = 4, 8
_TYPE = gguf.GGMLQuantizationType.Q8_0


def make_experts(source_path: Path, path: Path, seed: int) -> None:
    source = Source(source_path)
    arch = source.value("general.architecture")
    n_ff = source.arch_value("feed_forward_length") // SLICES
    writer = gguf.GGUFWriter(path, arch)
    source.copy_keys(
        writer,
        {
            f"{arch}.feed_forward_length": n_ff,
            "general.name": "smollm2-experts",
            "general.file_type": int(gguf.LlamaFileType.MOSTLY_Q8_0),
            "general.size_label": None,
            "general.description": None,
        },
    )
    writer.add_description(f"derived from smollm2: {COPIES} copies of {SLICES} slices of its MLPs, numpy PCG64, seed {seed}")
    writer.add_expert_count(SLICES * COPIES)
    writer.add_expert_used_count(SLICES)
    writer.add_expert_feed_forward_length(n_ff)
    write_tensors(writer, path, _tensors(source, n_ff, seed))


def _tensors(source: Source, n_ff: int, seed: int) -> list[Tensor]:
    random = np.random.Generator(np.random.PCG64(seed))
    result = []
    for name, tensor in source.tensors.items():
        shape = tuple(int(n) for n in reversed(tensor.shape))
        layer, _, part = name.rpartition(".ffn_")
        if part in ("gate.weight", "up.weight", "down.weight"):
            new = f"{layer}.ffn_{part.removesuffix('.weight')}_exps.weight"
            is_down = part == "down.weight"
            n_out, n_in = (shape[0], n_ff) if is_down else (n_ff, shape[1])
            experts = (SLICES * COPIES, n_out, n_in)
            result.append(Tensor(new, experts, _TYPE, lambda n=name, d=is_down: _slices(source.floats(n), d), copies=COPIES))
        else:
            result.append(Tensor(name, shape, stored_type(shape, _TYPE), lambda n=name: source.floats(n)))
        if part == "gate.weight":
            router = _router(random, shape[1])
            result.append(Tensor(f"{layer}.ffn_gate_inp.weight", router.shape, gguf.GGMLQuantizationType.F32, lambda r=router: r))
    return result


def _slices(matrix: np.ndarray, is_down: bool) -> np.ndarray:
    """(slices, outputs, inputs)."""
    slices = np.stack(np.split(matrix, SLICES, axis=1 if is_down else 0))
    # Each has an equal share of the whole.
    return slices * np.float32(SLICES if is_down else 1)


def _router(random: np.random.Generator, width: int) -> np.ndarray:
    """The same row for all slices of a copy, so that they are always taken together."""
    directions = random.standard_normal((COPIES, width), dtype=np.float32) / np.float32(np.sqrt(width))
    return np.repeat(directions, SLICES, axis=0)
