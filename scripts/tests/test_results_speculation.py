"""What the tables of speculation are made of."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

from library.page import ROOT, replace_marked
from library.speculation_settings import all_settings
from library.speculation_tables import best_single, first_token_table, over_best, published_table, readme_table, tables

CATEGORIES = ["chat", "chat", "math"]
# By method, the decode time of each of three prompts.
TIMES = {"none": [100, 100, 200], "auto": [50, 40, 110], "sssd": [50, 50, 125], "pld": [80, 80, 100]}


def measured(times: dict[str, list[float]] = TIMES) -> dict:
    return {
        name: {
            "prompts": 3,
            "identical": 3,
            "tokens_per_step": 1.5,
            "runs": [{"category": c, "decode_ms": ms} for c, ms in zip(CATEGORIES, row)],
        }
        for name, row in times.items()
    }


class Settings(unittest.TestCase):
    def test_each_is_there_once(self):
        settings = all_settings()
        self.assertEqual(len({setting.name for setting in settings}), len(settings))
        self.assertEqual(len({json.dumps(s.described() | {"name": ""}) for s in settings}), len(settings))
        for model in ("smollm2", "smollm2-q8", "smollm2-deep"):
            of_model = [setting for setting in settings if setting.model == model and not setting.tree]
            self.assertEqual({(s.draft, s.batch, s.temperature) for s in of_model},
                             {(draft, *rest) for draft in (False, True) for rest in [(1, 0), (1, 0.8), (8, 0), (16, 0)]})  # fmt: skip



class Tables(unittest.TestCase):
    def test_the_best_single_method(self):
        methods = measured()
        self.assertEqual([best_single(methods), best_single(methods, "chat"), best_single(methods, "math")], ["sssd", "sssd", "pld"])
        self.assertRegex(over_best(methods), r"^1\.12 \(")
        self.assertEqual(over_best(methods, "chat"), "1.11 (1.00 to 1.25)")
        self.assertEqual(over_best(methods, "math"), "0.91 (0.91 to 0.91)")

    def test_a_page(self):
        names = ("smollm2", "smollm2-8-at-once")
        lines = tables(
            results={name: measured() for name in names}, first_tokens={}, machines={name: "A" for name in names}
        )
        text = "\n".join(lines)
        self.assertEqual([line for line in lines if line.startswith("## ")], ["## SmolLM2-135M, Q4_1", "## Several requests at once"])
        self.assertRegex(text, r"\| texts, own layers \| 2\.00 \([^)]*\) \| `sssd` 1\.78 \| 1\.12 \([^)]*\) \| 1\.50 \| 3 of 3 \| A \|")
        self.assertIn("| `auto`, texts, own layers | 2.22 | 1.82 |\n| best single method | `sssd` 2.00 | `pld` 2.00 |\n| `auto` over it | 1.11 (1.00 to 1.25) | 0.91 (0.91 to 0.91) |", text)
        self.assertRegex(text, r"\| SmolLM2-135M, Q4_1 \| 8 \| texts, own layers \| 2\.00 .* \| 3 of 3 \| math 1\.82 \| A \|")
        for line in lines:  # every table's rows have as many cells as its head
            if line.startswith("|---"):
                head = lines[lines.index(line) - 1]
                self.assertEqual(line.count("|"), head.count("|"))

    def test_readme(self):
        lines = readme_table({"smollm2-q8-draft": measured()}, {"smollm2-q8-draft": "A"})
        self.assertEqual(
            lines[2:], ["| SmolLM2-135M, Q8_0 | and a draft model | 2.00 | `sssd` 1.78 | 1.50 | chat 2.22, math 1.82 | A |", ""]
        )
        self.assertEqual(readme_table({}, {}), [])

    def test_first_tokens(self):
        times = {"auto": [{"first_ms": ms, "last_ms": 2 * ms} for ms in (900, 300, 330)], "none": [{"first_ms": 300, "last_ms": 600}] * 3}
        lines = first_token_table({"smollm2": times})
        self.assertEqual(lines[2], "| SmolLM2-135M, Q4_1 | first | 330 ms | 300 ms | 1.10 | 3 |")
        self.assertEqual(lines[3], "| SmolLM2-135M, Q4_1 | 20th | 660 ms | 600 ms | 1.10 | 3 |")

    def test_rivals(self):
        lines = published_table(measured({"none": [100] * 3, "pld": [200] * 3}))
        self.assertEqual(lines[0], "|  | `pld` |")
        self.assertEqual(lines[2], "| speedup | 0.50 (0.50 to 0.50) |")
        self.assertEqual(published_table({}), [])

    def test_readme_has_a_place_for_it(self):
        replace_marked((ROOT / "README.md").read_text(), "speculation", [])



if __name__ == "__main__":
    unittest.main()
