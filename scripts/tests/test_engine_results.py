"""What the engine's table is made of."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import engine_results
from forerun_results.engine_tables import table


def comparison(ours: float, theirs: float) -> dict:
    return {"forerun_ms": ours, "libllama_ms": theirs, "ratio": theirs / ours}


RESULT = {
    "kernels": "neon",
    "decode": comparison(5, 10),
    "prefill": comparison(1000.4, 3001.2),
    "rows": [{"n": n, **comparison(4.0 + n, 8.0 + 2 * n)} for n in (1, 8)],
}


class EngineResults(unittest.TestCase):
    def test_times_and_ratios(self):
        lines = table({"smollm2": RESULT}).splitlines()
        self.assertEqual(lines[0], "| model | kernels | decode | 1 | 8 | prompt | 8 of 1 |")
        self.assertEqual(lines[2], "| smollm2 | neon | 5.0 (2.00) | 5.0 (2.00) | 12.0 (2.00) | 1000 (3.00) | 2.40 |")

    def test_a_pass_that_was_not_measured_is_empty(self):
        other = RESULT | {"rows": RESULT["rows"][:1]}
        self.assertIn("| 5.0 (2.00) |  | 1000 (3.00) |  |", table({"a": RESULT, "b": other}))

    def test_what_an_earlier_run_left_is_used(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "engine-m@1024.json").write_text(json.dumps(RESULT))
            arguments = ["engine_results.py", "--output", folder, "--model", "m@1024", "--program", "/nowhere"]
            with mock.patch.object(sys, "argv", arguments), mock.patch("builtins.print") as printed:
                engine_results.main()
            page = Path(folder, "engine.md").read_text()
        self.assertIn("| m@1024 | neon |", page)
        self.assertIn(page, printed.call_args.args)
