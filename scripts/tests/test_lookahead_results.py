"""What the comparison of stopping rules computes from measurements."""

import gzip
import tempfile
import unittest
from pathlib import Path

from forerun_results.lookahead_tables import best_fixed
from forerun_results.measured import draft_step_ms, interval, pass_cost
from forerun_results.stopping_model import chances_of, of_the_oracle
from lookahead_results import document_prompts, merged, short_name

COSTS = {"points": [{"rows": 1, "ms": 5.0}, {"rows": 5, "ms": 6.0}, {"rows": 64, "ms": 30.0}]}


class StoppingModel(unittest.TestCase):
    def test_costs_lie_between_those_measured(self):
        cost = pass_cost(COSTS)
        self.assertEqual([cost(1), cost(3), cost(5), cost(64), cost(90)], [5, 5.5, 6, 30, 30])

    def test_who_is_sure_is_an_oracle(self):
        certain = [(0.7, 1.0), (0.3, 0.0)]
        self.assertAlmostEqual(of_the_oracle(certain, 0.5, pass_cost(COSTS)), 1)

    def test_who_knows_nothing_is_not(self):
        unsure = of_the_oracle([(1.0, 0.7)], 0.5, pass_cost(COSTS))
        knows_some = of_the_oracle([(0.5, 0.9), (0.5, 0.5)], 0.5, pass_cost(COSTS))
        self.assertLess(unsure, knows_some)
        self.assertLess(knows_some, 0.95)

    def test_chances_are_those_of_the_bins(self):
        test = {"tokens": 8, "bins": [{"tokens": 2, "said": 0.1}, {"tokens": 0, "said": 0}, {"tokens": 6, "said": 0.9}]}
        self.assertEqual(chances_of(test), [(0.25, 0.1), (0.75, 0.9)])


class Results(unittest.TestCase):
    def test_names(self):
        self.assertEqual(short_name("none"), "none")
        self.assertEqual(short_name("draft:lookahead=fixed:lookahead-tokens=5"), "fixed 5")
        self.assertEqual(short_name("draft:lookahead=disco:lookahead-classifier=a/disco-code.gguf"), "disco (code)")
        self.assertEqual(short_name("draft:lookahead=cost"), "cost")

    def test_speeds(self):
        runs = {"none": [20, 40], "fixed 1": [10, 25], "fixed 2": [10, 20]}
        methods = merged([{name: {"runs": [{"decode_ms": ms}]} for name, (ms, _) in runs.items()},
                          {name: {"runs": [{"decode_ms": ms}]} for name, (_, ms) in runs.items()}])  # fmt: skip
        self.assertEqual(best_fixed(methods), "fixed 2")
        self.assertEqual(interval(methods["none"], methods["fixed 2"]), "2.00 (2.00 to 2.00)")
        self.assertEqual(draft_step_ms({"draft_share": 0.25, "drafted": 5, "runs": methods["none"]}), 3)

    def test_documents(self):
        with tempfile.TemporaryDirectory() as folder:
            for package, name, text in [("a", "README", "x" * 5000), ("a", "copyright", "y" * 5000),
                                        ("b", "notes.txt", "short"), ("c", "README", "x" * 5000)]:  # fmt: skip
                path = Path(folder) / package / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            (Path(folder) / "c" / "guide.md.gz").write_bytes(gzip.compress(b"z" * 1500))
            self.assertEqual([prompt["id"] for prompt in document_prompts(Path(folder))], ["a/README", "c/guide.md.gz"])


if __name__ == "__main__":
    unittest.main()
