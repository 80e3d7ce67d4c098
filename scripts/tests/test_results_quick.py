"""What a quick run says of the published pages."""

import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

import quick


def result(ms: list[float], accepted: int = 5) -> dict:
    return {"runs": [{"id": str(i), "decode_ms": m, "steps": 10, "accepted": accepted} for i, m in enumerate(ms)]}


PUBLISHED = {"measured": {"on": "A"}, "methods": {"none": result([100, 100, 900]), "auto": result([50, 50, 100])}}


class Quick(unittest.TestCase):
    def deltas(self, machine: str, now: dict) -> dict[tuple, quick.Delta]:
        with mock.patch.object(quick, "machine_name", return_value=machine):
            return {(d.method, d.what): d for d in quick.deltas("s", PUBLISHED, now)}

    def test_the_same_prompts_are_compared(self):
        found = self.deltas("A", {"none": result([120, 120]), "auto": result([60, 60])})
        self.assertEqual((found["auto", "speedup"].published, found["auto", "speedup"].now), (2, 2))
        self.assertAlmostEqual(found["none", "speed"].change, -1 / 6)
        self.assertTrue(found["none", "speed"].is_worse)
        self.assertFalse(found["auto", "tokens per pass"].is_worse)

    def test_speeds_of_another_machine_do_not_count(self):
        found = self.deltas("B", {"none": result([100, 100]), "auto": result([80, 80], accepted=4)})
        self.assertFalse(found["auto", "speedup"].is_worse)
        self.assertTrue(found["auto", "tokens per pass"].is_worse)
        self.assertIn("1 worse than published", quick.report(list(found.values()))[-1])

    def test_other_prompts_are_an_error(self):
        with self.assertRaises(SystemExit):
            quick.deltas("s", PUBLISHED, {"none": {"runs": [{"id": "x"}]}})

    def test_settings_are_published_ones(self):
        self.assertEqual([setting.name for setting in quick.chosen_settings()], list(quick.SETTINGS))
        self.assertTrue(all("auto" in setting.methods for setting in quick.chosen_settings()))


if __name__ == "__main__":
    unittest.main()
