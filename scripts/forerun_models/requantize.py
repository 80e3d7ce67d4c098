"""Stores a model in another weight type with forerun-requantize (tools/requantize)."""

import os
import subprocess
from pathlib import Path

from .errors import SetupError

_REPOSITORY = Path(__file__).resolve().parents[2]


def requantize(source: Path, target: Path, weight_type: str) -> None:
    tool = os.environ.get("FORERUN_REQUANTIZE") or _REPOSITORY / "build" / "bin" / "forerun-requantize"
    try:
        run = subprocess.run([tool, source, target, weight_type], stderr=subprocess.PIPE, text=True)
    except OSError:
        raise SetupError(
            f"cannot run {tool}: build it with 'make', or set FORERUN_REQUANTIZE to the program"
        ) from None
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"it ended with status {run.returncode}"]
        raise SetupError(f"requantising {source.name} failed: {lines[-1].removeprefix('forerun: ')}")
