"""Runs the forerun program, for the tests beside this file."""

import json
import os
import subprocess
import unittest
from pathlib import Path

PROGRAM = Path(os.environ["FORERUN_PROGRAM"])
MODELS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forerun" / "models"
# Tests share the machine with each other; unpinned threads do not queue on one CPU.
QUICK = ["-t", "2", "--no-pin"]


def model(name: str) -> Path:
    path = MODELS / f"{name}.gguf"
    if not path.exists():
        raise AssertionError(f"{path} is missing: run 'make models'")
    return path


def run(*arguments, stdin: bytes = b"", environment: dict | None = None) -> subprocess.CompletedProcess:
    command = [PROGRAM, *map(os.fsencode, map(str, arguments))]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, env={**os.environ, **(environment or {})})


class ProgramTest(unittest.TestCase):
    def succeed(self, *arguments, stdin: bytes = b"") -> subprocess.CompletedProcess:
        result = run(*arguments, stdin=stdin)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        return result

    def succeed_json(self, *arguments, stdin: bytes = b"") -> dict:
        return json.loads(self.succeed(*arguments, "--json", stdin=stdin).stdout)

    def fail_with(self, expected: str, *arguments, stdin: bytes = b"", environment: dict | None = None) -> str:
        """The program says what is wrong in one line, and that it failed."""
        result = run(*arguments, stdin=stdin, environment=environment)
        message = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, 1, f"{arguments}: {message}")
        self.assertEqual(result.stdout, b"")
        # Where a machine is slow, lines before it show how far the work is.
        self.assertRegex(message, r"\A((?!forerun: )[^\n]+ \d+ %[^\n]*\n)*forerun: [^\n]+\n\Z")
        self.assertIn(expected, message)
        return message
