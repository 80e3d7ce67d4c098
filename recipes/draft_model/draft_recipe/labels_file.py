"""Keeps labels on disk between runs: they take a pass of the teacher over all rows."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import torch

from .blocks import Block, Labels
from .journal import Clock


def save_labels(folder: Path, blocks: list[Block], clock: Clock) -> int:
    """As many as time and the disk allow; returns how many blocks' labels are kept."""
    room = shutil.disk_usage(folder).free * 0.8
    index: list[tuple[int, int, int]] = []  # block, positions, labels of each
    with (folder / ".partial-labels.bin").open("wb") as file:
        for i, block in enumerate(blocks):
            if block.labels is None or file.tell() > room:
                continue
            if clock.left() <= 0:
                break
            block.labels.tokens.cpu().numpy().tofile(file)
            block.labels.chances.cpu().numpy().tofile(file)
            index.append((i, *block.labels.tokens.shape))
    (folder / "labels.json").unlink(missing_ok=True)
    os.replace(folder / ".partial-labels.bin", folder / "labels.bin")
    (folder / "labels.json").write_text(json.dumps({"blocks": _fingerprint(blocks), "index": index}))
    return len(index)


def load_labels(folder: Path, blocks: list[Block]) -> int:
    """Returns how many blocks have labels now. Those of other blocks than these are left alone."""
    try:
        kept = json.loads((folder / "labels.json").read_text())
    except (OSError, ValueError):
        return 0
    if kept["blocks"] != _fingerprint(blocks):
        return 0
    with (folder / "labels.bin").open("rb") as file:
        for i, *shape in kept["index"]:
            tokens, chances = (np.fromfile(file, dtype, shape[0] * shape[1]) for dtype in (np.int16, np.float16))
            if len(chances) < shape[0] * shape[1]:
                return sum(block.labels is not None for block in blocks)  # the file was cut off
            device = blocks[i].tokens.device
            blocks[i].labels = Labels(*(torch.from_numpy(a.reshape(shape)).to(device) for a in (tokens, chances)))
    return len(kept["index"])


def _fingerprint(blocks: list[Block]) -> list[int]:
    """Enough to tell other rows or another choice of positions apart."""
    return [
        len(blocks),
        sum(len(b.positions) for b in blocks),
        *(int(b.tokens.sum()) for b in blocks[:: max(1, len(blocks) // 16)]),
    ]
