"""What the overview says of other pages' files."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

import overview
from library import overview_numbers as numbers


def result(ms: float, accept_rate: float = 0.5) -> dict:
    return {"accept_rate": accept_rate, "runs": [{"category": "a", "decode_ms": ms}]}


def file(methods: dict[str, dict], **identity: object) -> dict:
    return {"identity": {"threads": 2, **identity}, "measured": {"on": "A", "date": "2026-01-01"}, "methods": methods}


FILES = {
    "speculation": {"smollm2": file({"none": result(100), "auto": result(50), "sssd": result(60)})},
    "stores": {
        f"{kind}-x": file({"none": result(100), "sssd": result(ms)}, kind=kind, set="x", prompts="1", set_prompts="1")
        for kind, ms in (("store", 50), ("input", 80))
    },
    "layers": {
        "swift-ablation": file({"none": result(100), "SWIFT as published": result(125, 0.2)}, model="deep"),
        "speeds": file({"none": result(100), "swift": result(80, 0.9)}, model="deep"),
    },
    "domains": {
        f"stream-{i}": file({"none": result(100), "labelled": result(ms), "shared": result(90), "unlabelled": result(70)})
        for i, ms in ((0, 50), (1, 80))
    },
    "stopping": {
        "speed-q8-code-0": {
            **file({}, what="speed", comparison="q8", set="code"), "draft_ms": 1,
            "methods": {label: [{"decode_ms": ms}] for label, ms in
                        {"none": 100, "fixed 2": 60, "fixed 5": 66, "disco (code)": 50, "cost": 40, "heuristic": 75}.items()},
        }
    },
    "gpu": {},
    "network": {},
    "serving": {},
    "engine": {},
}  # fmt: skip


class Overview(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(
            numbers.whole_system(FILES), "**2.00** times, 1.20 of the best single method; the slowest category 2.00"
        )
        self.assertIn("x **2.00**, 1.25 without", numbers.sssd_with_store(FILES))
        self.assertIn("as published 0.80, 20 % accepted; as forerun has it **1.25**, 90 % (deep)", numbers.swift_own(FILES))
        self.assertIn("**1.25 to 2.00**, 1.11 with one set", numbers.knnssd_over_shared(FILES))
        self.assertEqual(
            numbers.disco_over_fixed(FILES),
            "**1.20** times the best fixed length, 1.50 times the heuristic one; `cost`, which needs no training, 1.50",
        )

    def test_a_page(self):
        text = "\n".join(overview.page_lines(FILES))
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual({row.count("|") for row in rows if "as published" in row or "best single" in row}, {6})
        self.assertIn("[stopping.md](stopping.md)", text)
        self.assertNotIn("engine.md](engine.md) |", text)
        self.assertNotIn("| KnapSpec |", text)  # nothing is measured of it

    def test_nothing_is_said_of_what_is_not_measured(self):
        nothing = {page: {} for page in FILES}
        self.assertEqual([claim.ours(nothing) for claim in overview.CLAIMS], [None] * len(overview.CLAIMS))


if __name__ == "__main__":
    unittest.main()
