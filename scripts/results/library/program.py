"""Runs forerun, several commands side by side, each on cores of its own."""

import json
import os
import queue
import subprocess
import sys
import tempfile
from pathlib import Path


class ProgramFailed(RuntimeError):
    """What the program said of it."""


class Program:
    def __init__(self, path: str, threads: int, jobs: int = 1) -> None:
        self.path, self.threads, self.jobs = path, threads, jobs
        cores = sorted(os.sched_getaffinity(0))
        self.cores: queue.Queue[list[int]] = queue.Queue()
        for job in range(jobs):
            self.cores.put(cores[job * threads : (job + 1) * threads] or cores)

    def run(self, *arguments: object, model: str | None = None, cache: Path | None = None,
            kernels: str = "") -> str:  # fmt: skip
        """What it prints. Without a model, for commands that know neither models nor threads.

        Nothing of an earlier run is known to it, neither costs nor what was learnt of drafts, unless it is in
        the folder `cache`. `kernels`: others than the best.
        """
        cores = self.cores.get()
        with_model = ["-m", model, "-t", str(self.threads)] if model else []
        command = [self.path, *map(str, arguments), *with_model]
        print(" ".join(command), file=sys.stderr)
        try:
            with tempfile.TemporaryDirectory() as empty:
                environment = {**os.environ, "XDG_CACHE_HOME": str(cache or empty)}
                if kernels:
                    environment["FORERUN_KERNELS"] = kernels
                done = subprocess.run(
                    command, capture_output=True, text=True, env=environment,
                    preexec_fn=lambda: os.sched_setaffinity(0, cores),
                )  # fmt: skip
        finally:
            self.cores.put(cores)
        if done.returncode != 0:
            raise ProgramFailed(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments: object, model: str | None = None, cache: Path | None = None) -> dict:
        """What it prints as JSON."""
        return json.loads(self.run(*arguments, "--json", model=model, cache=cache))

    def bench_spec(self, *arguments: object, model: str, **settings: object) -> dict:
        """What `bench spec` writes about its methods. `settings`: as run() has them."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.json"
            self.run("bench", "spec", *arguments, "--json", path, model=model, **settings)
            return json.loads(path.read_text())
