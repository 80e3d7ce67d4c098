"""What the engine's tables are made of."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

from library.engine_tables import machine_table, readme_table, tables
from library.page import ROOT, replace_marked


def comparison(ours: float, theirs: float) -> dict:
    return {"forerun_ms": ours, "libllama_ms": theirs, "ratio": theirs / ours}


RESULT = {
    "kernels": "neon",
    "decode": comparison(5, 10),
    "prefill": comparison(1000.4, 3001.2),
    "rows": [{"n": n, **comparison(4.0 + n, 8.0 + 2 * n)} for n in (1, 8)],
}


def measured(model: str, on: str, device: str = "cpu") -> dict:
    return {"identity": {"model": model, "threads": 2, "device": device}, "measured": {"on": on}, "result": RESULT}


class EngineResults(unittest.TestCase):
    def test_times_and_ratios(self):
        lines = machine_table({"smollm2": RESULT})
        self.assertEqual(lines[0], "| model | kernels | decode | 1 | 8 | prompt | 8 of 1 |")
        self.assertEqual(
            lines[2], "| SmolLM2-135M, Q4_1 | neon | 5.0 (2.00) | 5.0 (2.00) | 12.0 (2.00) | 1000 (3.00) | 2.40 |"
        )

    def test_a_pass_that_was_not_measured_is_empty(self):
        other = RESULT | {"rows": RESULT["rows"][:1]}
        self.assertIn("| 5.0 (2.00) |  | 1000 (3.00) |  |", machine_table({"a": RESULT, "b": other})[3])

    def test_every_machine_has_a_table(self):
        files = [measured("smollm2", "A"), measured("smollm2@4096", "A"), measured("smollm2", "B", "cuda")]
        text = "\n".join(tables(files))
        self.assertEqual([line for line in text.splitlines() if line.startswith("##")], ["## A, 2 threads", "## cuda beside B"])
        self.assertIn("| SmolLM2-135M, Q4_1, 4,096 tokens of context |", text)
        rows = readme_table(files)[2:]
        self.assertEqual(rows[0], "| SmolLM2-135M, Q4_1 | A, 2 threads | 2.00 |  / 2.00 | 3.00 |  |  |")

    def test_readme_has_a_place_for_it(self):
        replace_marked((ROOT / "README.md").read_text(), "engine", [])


if __name__ == "__main__":
    unittest.main()
