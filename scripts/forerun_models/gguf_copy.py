"""Reads a GGUF and writes a changed copy, one tensor in memory at a time."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

_PLAIN = {gguf.GGMLQuantizationType.F32: np.float32, gguf.GGMLQuantizationType.F16: np.float16}


class Source:
    """An existing model; tensors are dequantised on demand."""

    def __init__(self, path: Path):
        self._reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in self._reader.tensors}

    def value(self, key: str):
        return self._reader.fields[key].contents()

    def arch_value(self, key: str):
        return self.value(f"{self.value('general.architecture')}.{key}")

    def floats(self, name: str) -> np.ndarray:
        """float32, (rows, row length) for a matrix."""
        tensor = self.tensors[name]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)

    def copy_keys(self, writer: gguf.GGUFWriter, changed: dict) -> None:
        """Copies all keys; `changed` holds new values of existing ones, None to leave one out."""
        for field in self._reader.fields.values():
            if field.name.startswith("GGUF.") or field.name == "general.architecture":
                continue
            value = changed[field.name] if field.name in changed else field.contents()
            if value is None:
                continue
            is_array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_key_value(field.name, value, field.types[0], sub_type=field.types[-1] if is_array else None)


@dataclass
class Tensor:
    """A tensor to write. `make` gives its values when their turn comes."""

    name: str
    shape: tuple[int, ...]  # numpy's order
    type: gguf.GGMLQuantizationType
    make: Callable[[], np.ndarray]
    copies: int = 1  # of these values, one behind the other
    key: Hashable = None  # tensors of one key have the same values, which are quantised once and kept


def write_tensors(writer: gguf.GGUFWriter, path: Path, tensors: list[Tensor]) -> None:
    for t in tensors:
        stored = gguf.quant_shape_to_byte_shape(t.shape, t.type)
        dtype = _PLAIN.get(t.type)
        shape = t.shape if dtype else stored  # the writer wants bytes of what numpy cannot hold
        n_bytes = math.prod(stored)
        writer.add_tensor_info(t.name, shape, np.dtype(dtype or np.uint8), n_bytes, raw_dtype=None if dtype else t.type)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    kept: dict[Hashable, np.ndarray] = {}
    for t in tensors:
        data = kept.get(t.key)
        if data is None:
            data = gguf.quants.quantize(t.make(), t.type)
            if t.key is not None:
                kept[t.key] = data
        writer.write_tensor_data(np.concatenate([data] * t.copies))
    writer.close()


def stored_type(shape: tuple[int, ...], matrix_type: gguf.GGMLQuantizationType) -> gguf.GGMLQuantizationType:
    """Vectors stay F32."""
    return matrix_type if len(shape) > 1 else gguf.GGMLQuantizationType.F32
