"""Many token lists of different lengths in two arrays, as they are kept in files."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ragged:
    tokens: np.ndarray  # uint16, one list after the other
    starts: np.ndarray  # of each list, and the end of the last

    @staticmethod
    def of(lists: Iterable[np.ndarray]) -> "Ragged":
        lists = [np.asarray(tokens, np.uint16) for tokens in lists]
        starts = np.cumsum([0, *map(len, lists)])
        return Ragged(np.concatenate([*lists, np.empty(0, np.uint16)]), starts.astype(np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.tokens[self.starts[index] : self.starts[index + 1]]

    def pack(self, name: str) -> dict[str, np.ndarray]:
        """Arrays for np.savez; lengths compress better than starts."""
        return {name: self.tokens, f"{name}_lengths": np.diff(self.starts).astype(np.int32)}

    @staticmethod
    def unpack(arrays, name: str) -> "Ragged":
        starts = np.cumsum(np.concatenate([[0], arrays[f"{name}_lengths"]]))
        return Ragged(arrays[name], starts.astype(np.int64))
