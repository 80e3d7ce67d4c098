"""What the tables of servers under load are made of."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

from library.serving_tables import SECTIONS, tables


def measured(model: str, prefix: int) -> dict:
    server = {"server": "auto", "streams": 4, "tokens_per_second": 123.4, "ratio": 1.234, "first_text_p50_ms": 10.4,
              "first_text_p99_ms": 99.6, "between_texts_p50_ms": 5, "between_texts_p99_ms": 7, "failed": 0,
              "other_texts": 2}  # fmt: skip
    peer = server | {"server": "llama-server", "ratio": 0.5}
    return {"identity": {"model": model, "prefix": prefix}, "servers": [server, peer]}


class ServingResults(unittest.TestCase):
    def test_every_server_has_a_row(self):
        lines = tables([measured("smollm2", 0)])
        self.assertIn("| SmolLM2-135M, Q4_1 | 4 | forerun, `--spec auto` | 123 | 1.23 | 10, 100 | 5, 7 | 2 |", lines)
        self.assertIn("| SmolLM2-135M, Q4_1 | 4 | llama-server | 123 | 0.50 | 10, 100 | 5, 7 | 2 |", lines)

    def test_loads_with_shared_instructions_stand_apart(self):
        self.assertEqual([line for line in tables([measured("smollm2", 0)]) if line.startswith("#")], SECTIONS[:1])
        both = tables([measured("smollm2", 40), measured("smollm2", 0)])
        self.assertEqual([line for line in both if line.startswith("#")], SECTIONS)


if __name__ == "__main__":
    unittest.main()
