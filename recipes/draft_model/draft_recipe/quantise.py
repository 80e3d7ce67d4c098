"""Q4_0 as the student meets it in training: its weights rounded as its file will hold them.

Blocks of 32 numbers share a scale, their largest one over -8. Gradients pass through as if
nothing had been rounded.
"""

import torch

BLOCK = 32


def rounded(x: torch.Tensor) -> torch.Tensor:
    """What x is after it was stored as Q4_0 and read back."""
    blocks = x.unflatten(-1, (-1, BLOCK))
    high, low = blocks.amax(-1, keepdim=True), blocks.amin(-1, keepdim=True)
    scale = torch.where(high >= -low, high, low) / -8
    inverse = torch.where(scale == 0, 0.0, 1 / scale)
    steps = (blocks * inverse + 8.5).trunc().clamp(0, 15)
    return ((steps - 8) * scale.half().float()).flatten(-2)
