"""A teacher and files of tokens small enough for tests."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

_RECIPE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_RECIPE), str(_RECIPE.parents[1] / "scripts")]

from draft_recipe.ragged import Ragged  # noqa: E402
from forerun_models import tiny, tiny_specs  # noqa: E402

TURN, END, USER, ASSISTANT, LINE = 3, 4, 40, 50, 60
HEAD, TAIL = [TURN, USER, LINE], [END, LINE, TURN, ASSISTANT, LINE]
N_VOCAB = 300  # tokens that the files use


def write_teacher(folder: Path) -> Path:
    spec = next(s for s in tiny_specs.tiny_specs() if s.name == "tiny-llama-h64")
    spec = replace(spec, n_layer=2, width=64, n_ff=96, n_head=4, n_head_kv=2, head_size=16, weight_type="F32")
    return tiny.write_tiny(spec, folder / "teacher.gguf")[0]


def write_data(folder: Path, seed: int = 1) -> Path:
    """prompts.npz and measure.npz of random words."""
    rng = random.Random(seed)
    words = lambda low, high: [rng.randrange(70, N_VOCAB) for _ in range(rng.randint(low, high))]
    lists = {
        "turns": [words(3, 9) for _ in range(30)],
        "article_asks": [words(3, 6) for _ in range(10)],
        "article_starts": [words(0, 2) for _ in range(10)],
        "paragraphs": [words(15, 30) for _ in range(20)],
        "functions": [words(10, 20) for _ in range(5)],
        "ask_before": [words(2, 4) for _ in range(3)],
        "ask_after": [words(4, 6) for _ in range(3)],
        "ask_of_code": [words(2, 4) for _ in range(3)],
        "chat": [HEAD, TAIL, [LINE], [LINE, LINE]],
    }
    packed = {"books": np.array([0, 8, 20], np.int32), "spaced": np.arange(N_VOCAB, dtype=np.uint16)}
    for name, entries in lists.items():
        packed |= Ragged.of(entries).pack(name)
    np.savez(folder / "prompts.npz", **packed)
    asked = Ragged.of([*HEAD, *words(4, 20), *TAIL] for _ in range(4))
    chat = Ragged.of([HEAD, TAIL])
    np.savez(
        folder / "measure.npz", categories=np.array(["a", "a", "b", "b"]), **asked.pack("prompts"), **chat.pack("chat")
    )
    return folder
