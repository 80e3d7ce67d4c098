"""How long the first tokens of an answer take, for a model that this machine has never seen."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

N_TOKENS = 20


def model_path(model: str) -> Path:
    """Where a model lies that is given by name."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(model)
    return path if path.exists() else cache / "forerun" / "models" / f"{model}.gguf"


def measure(program: str, model: str, prompt: str, threads: int, repeats: int) -> dict[str, list[dict]]:
    """By method, `auto` and `none` by turns: milliseconds to the first token and to the 20th, loading included."""
    found: dict[str, list[dict]] = {"auto": [], "none": []}
    for i in range(repeats):
        for method in ("auto", "none") if i % 2 == 0 else ("none", "auto"):
            command = [program, "run", "-m", str(model_path(model)), "--spec", method, "--temp", "0", "-n", str(N_TOKENS),
                       "--ignore-eos", "-t", str(threads), "-p", prompt]  # fmt: skip
            # Nothing of an earlier run is known: neither costs nor layers.
            with tempfile.TemporaryDirectory() as cache:
                found[method].append(times_of(command, {**os.environ, "XDG_CACHE_HOME": cache}))
    return found


def times_of(command: list[str], environment: dict[str, str]) -> dict:
    start = time.monotonic()
    first = last = None
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment) as process:
            for now in arrivals(process.stdout.fileno()):
                first, last = first or now, now
        if process.returncode != 0 or first is None:
            errors.seek(0)
            raise RuntimeError(f"{command}: {errors.read().decode(errors='replace')}")
    return {"first_ms": 1e3 * (first - start), "last_ms": 1e3 * (last - start)}


def arrivals(pipe: int) -> Iterable[float]:
    """When pieces of text come. A line end alone is what the program adds behind an answer."""
    while piece := os.read(pipe, 1 << 16):
        if piece != b"\n":
            yield time.monotonic()


def medians(runs: list[dict]) -> dict:
    return {key: statistics.median(run[key] for run in runs) for key in ("first_ms", "last_ms")}
