"""What the comparison of rules that end drafts computes, and which prompts it is made with."""

import gzip
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

from library import stopping_paper
from library.measured import pass_cost
from library.page import Measurement
from library.setup import Setup, write_prompts
from library.stopping_model import (
    by_place, chances_of, fastest, mean_and_deviation, of_the_oracle, oracle_lengths, shares,
)  # fmt: skip
from library.stopping_settings import COMPARISONS, disco, document_prompts, sets_of, split, tuned
from library.stopping_tables import SECTIONS, best_fixed, loss_table, page, speed_table, steps_plot, summary_table
from stopping import Stopping, Work, slim

COSTS = {"points": [{"rows": 1, "ms": 5.0}, {"rows": 5, "ms": 6.0}, {"rows": 64, "ms": 30.0}]}


def run(ms: float, accepted: list[int] | None = None, drafted: list[int] | None = None) -> dict:
    accepted = accepted or [1, 0]
    drafted = drafted or [2, 1]
    return {"id": "1", "tokens": 9, "identical": True, "decode_ms": ms, "steps": len(accepted), "drafted": sum(drafted),
            "accepted": sum(accepted), "accepted_by_step": accepted, "drafted_by_step": drafted}  # fmt: skip


def rules_of() -> dict:
    times = {"none": 100, "fixed 1": 80, "fixed 5": 50, "oracle": 20}
    times |= {disco("code"): 40, "cost": 44, tuned("confidence"): 45}
    return {label: [run(ms), run(ms)] for label, ms in times.items()}


class Model(unittest.TestCase):
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

    def test_lengths_of_the_oracle(self):
        runs = [run(1, accepted=[0, 2, 4]), run(1, accepted=[2])]
        lengths = oracle_lengths(runs)
        self.assertEqual(lengths, [0, 2, 4, 2])
        self.assertEqual(mean_and_deviation(lengths), (2, 2**0.5))
        self.assertEqual(mean_and_deviation([]), (0, 0))
        self.assertEqual(shares(lengths, 3), [(0, 0.25), (1, 0), (2, 0.5), (3, 0.25)])
        self.assertEqual(by_place(runs, 3), [(0.5 / 3, 1), (1.5 / 3, 2), (2.5 / 3, 4)])

    def test_the_fastest_value(self):
        self.assertEqual(fastest({"0.2": 30, "0.5": 10.5, "0.8": 11}), 0.5)


class Sets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name: str, *categories: str) -> Path:
        path = self.folder / name
        prompts = [{"id": f"{name}{i}", "category": category, "turns": ["x"]} for i, category in enumerate(categories)]
        write_prompts(path, prompts)
        return path

    def options(self, *sets: str, prompts: Path, documents: Path | None = None) -> Namespace:
        return Namespace(set=list(sets), prompts=prompts, documents=documents)

    def ids(self, sets: dict) -> dict:
        return {name: [prompt["id"] for prompt in prompts] for name, prompts in sets.items()}

    def test_summaries_are_a_category(self):
        prompts, code = self.file("p", "chat", "summarization", "summarization"), self.file("c", "a")
        sets = sets_of(self.options(f"code={code}", prompts=prompts))
        self.assertEqual(self.ids(sets), {"code": ["c0"], "summaries": ["p1", "p2"]})
        own = sets_of(self.options(f"summaries={code}", prompts=prompts))
        self.assertEqual(self.ids(own), {"summaries": ["c0"]})

    def test_without_any_all_prompts_are_one(self):
        self.assertEqual(self.ids(sets_of(self.options(prompts=self.file("p", "chat", "math")))), {"all": ["p0", "p1"]})

    def test_each_prompt_has_one_use(self):
        prompts = [{"id": i} for i in range(10)]
        uses = {use: [p["id"] for p in part] for use, part in split(prompts, 2, 3, 4).items()}
        self.assertEqual(uses, {"test": [0, 1], "validation": [2, 3, 4], "training": [5, 6, 7, 8]})

    def test_few_prompts_have_every_use(self):
        uses = split([{"id": 1}, {"id": 2}], 2, 2, 4)
        self.assertEqual([len(part) for part in uses.values()], [2, 2, 2])

    def test_documents(self):
        for package, name, text in [("a", "README", "x" * 5000), ("a", "copyright", "y" * 5000),
                                    ("b", "notes.txt", "short"), ("c", "README", "x" * 5000)]:  # fmt: skip
            path = self.folder / package / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (self.folder / "c" / "guide.md.gz").write_bytes(gzip.compress(b"z" * 1500))
        self.assertEqual([prompt["id"] for prompt in document_prompts(self.folder)], ["a/README", "c/guide.md.gz"])


class Tables(unittest.TestCase):
    def test_the_best_length_is_what_rules_are_compared_with(self):
        rules = rules_of()
        self.assertEqual(best_fixed(rules), "fixed 5")
        lines = "\n".join(summary_table({"q8": {"code": rules}}))
        # 50 over 40, 45, 44 and 20, and 20 over 40.
        cells = ["`fixed 5` 2.00", *(f"{x} ({x} to {x})" for x in ("1.25", "1.11", "1.14", "2.50")), "0.50"]
        self.assertIn(" | ".join(["code", *cells]), lines)
        self.assertIn("| 1.64 | 1.13 |  |  | 1.39 | 0.81 |", lines, "MBPP's, of the paper")

    def test_no_draft_at_all(self):
        nothing = {label: [run(10, accepted=[0], drafted=[0])] for label in rules_of()}
        for lines in (speed_table("code", nothing), loss_table(nothing)):
            self.assertGreater(len(lines), 3)
        self.assertIn("polyline", steps_plot("code", nothing))

    def test_own_classifiers_are_marked(self):
        lines = speed_table("code", rules_of() | {disco("math"): [run(30), run(30)]})
        self.assertTrue(any(line.startswith("| `disco (code)` (its own) |") for line in lines))
        self.assertTrue(any(line.startswith("| `disco (math)` |") for line in lines))

    def test_the_paper_in_ratios(self):
        self.assertEqual((stopping_paper.OVER_BEST, stopping_paper.OF_ORACLE), ("1.05 to 1.16", "0.81 to 0.89"))

    def test_parts_are_put_together(self):
        identity = {"what": "speed", "comparison": "q8", "model": "smollm2-q8", "set": "code", "of": "mbpp.jsonl",
                    "threads": 2, "tokens": 9, "parts": 2,
                    "uses": {"test": 4, "validation": 2, "training": 2}}  # fmt: skip
        measured = {"on": "a machine", "date": "2026-01-01"}
        file = {"identity": identity, "measured": measured, "draft_ms": None, "methods": rules_of()}
        written = page({f"speed-q8-code-{part}": file for part in range(2)})
        self.assertIn("| 4 of 4 |", "\n".join(written.lines))
        self.assertEqual(set(written.plots), {"lengths", "oracle-lengths", "oracle-places", "steps-code"})


# What the program would print, or write.
SAID = {
    **{"examples": 40, "f1": 0.5, "threshold": 0.5, "max_tokens": 8, "seconds": 1.0},
    **{"tokens": 4, "taken": 0.5, "half": {"f1": 0.5}, "calibration_error": 0.1},
    "bins": [{"tokens": 4, "said": 0.5}] * 10,
    **COSTS,
}


class Measurements(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        prompts = self.folder / "prompts.jsonl"
        write_prompts(prompts, [{"id": str(i), "turns": ["x"]} for i in range(8)])
        arguments = ["--quick", "--prompts", prompts, "--model", "*=m.gguf", "--output", self.folder / "raw"]
        self.setup_ = Setup(Stopping().parse(list(map(str, arguments))), work=self.folder / "work")
        self.benched: list[list[str]] = []
        self.known: list[set[str]] = []
        self.asked: list[tuple] = []
        self.setup_.program = mock.Mock()
        self.setup_.program.json.side_effect = self.say
        self.setup_.bench = self.bench

    def say(self, *arguments: object, model: str, cache: Path | None = None) -> dict:
        self.asked.append(tuple(map(str, arguments)))
        return SAID

    def bench(self, model: str, methods: list[str], *flags: object, prompts: Path, n_prompts: int, cache: Path) -> dict:
        self.known.append({path.name for path in cache.iterdir()})
        self.benched.append(methods)
        ms = {method: 10.0 + i for i, method in enumerate(["none", *methods])}
        return {"methods": {m: {"runs": [run(t)] * 2, "drafted": 3, "draft_share": 0.5} for m, t in ms.items()}}

    def measure(self) -> dict[str, dict]:
        found: list[Measurement] = Stopping().measurements(self.setup_)
        self.assertEqual(len({m.name for m in found}), len(found))
        measured = {"on": "a machine", "date": "2026-01-01"}
        return {m.name: {"identity": m.depends_on, "measured": measured, **m.measure()} for m in found}

    def test_the_page_has_all_sections(self):
        text = "\n".join(page(self.measure()).lines)
        for heading in SECTIONS:
            self.assertRegex(text.partition(f"\n{heading}\n")[2].partition("\n## ")[0], r"\n\|---", heading)

    def test_classifiers_are_trained_once(self):
        self.measure()
        trainings = [asked for asked in self.asked if asked[:2] == ("disco", "train")]
        self.assertEqual(len(trainings), len(COMPARISONS))
        self.assertEqual([asked[asked.index("--temp") + 1] for asked in trainings], ["0", "0", "0.8"])

    def test_what_is_chosen_is_measured(self):
        work = Work(self.setup_)
        file = work.speed(COMPARISONS["q8"], "all", 0)
        # The first of the times above are the least.
        self.assertEqual(file["chosen"], {"confidence": 0.2, "perplexity": 1.2})
        self.assertIn("draft:lookahead=confidence:lookahead-threshold=0.2:tokens=16", self.benched[-1])
        self.assertEqual(self.known[-2:], [{"calibration.json"}, {"calibration.json", "times.json"}])
        self.assertIn("drafted_by_step", file["methods"]["oracle"][0])
        self.assertNotIn("drafted_by_step", file["methods"]["fixed 5"][0])

    def test_other_prompts_are_another_result(self):
        first = {m.name: m.depends_on for m in Stopping().measurements(self.setup_)}
        path = self.setup_.options.prompts
        path.write_text(path.read_text().replace("x", "y", 1))
        second = {m.name: m.depends_on for m in Stopping().measurements(self.setup_)}
        self.assertNotEqual(first["train-q8-all"], second["train-q8-all"])

    def test_nothing_is_kept_that_no_table_reads(self):
        self.assertEqual(set(slim(run(1) | {"prompt_ms": 3, "category": "a"}, with_steps=False)),
                         {"id", "tokens", "identical", "decode_ms", "steps", "drafted", "accepted"})  # fmt: skip


if __name__ == "__main__":
    unittest.main()
