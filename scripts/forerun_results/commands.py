"""Runs commands of forerun, several side by side, and keeps what they say."""

import argparse
import json
import os
import queue
import subprocess
import sys
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder for all results")
    parser.add_argument("--program", default="build/bin/forerun")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="commands side by side")
    parser.add_argument("--tokens", type=int, default=96, help="of an answer")


class Commands:
    """Each command has cores of its own. What an earlier run left in the folder is used as it is."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.program, self.output, self.threads = options.program, options.output, options.threads
        self.output.mkdir(parents=True, exist_ok=True)
        self.cores: queue.Queue[list[int]] = queue.Queue()
        all_cores = sorted(os.sched_getaffinity(0))
        for job in range(options.jobs):
            self.cores.put(all_cores[job * self.threads : (job + 1) * self.threads])

    def run(self, name: str, *arguments: object, model: str, writes: bool = False) -> dict:
        """What a command prints as JSON, or writes, kept in a file of this name."""
        path = self.output / name
        if not path.exists():
            cores = self.cores.get()
            command = [self.program, *map(str, arguments), "-m", model, "-t", str(self.threads)]
            print(" ".join(command), file=sys.stderr)
            try:
                done = subprocess.run(
                    command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores)
                )
            except subprocess.CalledProcessError as error:
                sys.exit(f"{name}: {error.stderr}")
            finally:
                self.cores.put(cores)
            if not writes:
                path.write_text(done.stdout)
        return json.loads(path.read_text())
