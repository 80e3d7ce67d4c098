"""What the tables of the model as its own drafter are made of."""

import sys
import unittest
import xml.dom.minidom
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

import layers  # noqa: E402
from library.correlation import pearson, ranks, spearman  # noqa: E402
from library.layers_choices import (  # noqa: E402
    context_section, correlation_table, found_section, layer_picture, objective_points, objective_section, same_section,
    search_file, small_section,
)  # fmt: skip
from library.layers_settings import BENCHES, FIND, KNAPSPEC, SAME, SEARCHES, SWIFT, changed  # noqa: E402
from library.layers_tables import (  # noqa: E402
    ceiling, cut_short, mixed_tree, parts_section, published_section, skip_section, speed_section, sweep_section,
)  # fmt: skip


def result(decode_ms: float, drafted: int = 40, accepted: int = 30, source: str = "layers") -> dict:
    runs = [{"category": "a", "decode_ms": decode_ms / 2, "steps": 10, "tokens": 20} for _ in range(2)]
    counts = {"drafted": drafted, "tested": drafted, "accepted": accepted}
    return {
        "prompts": 2, "identical": 2, "tokens_per_step": 2.0, "drafted": drafted, "accepted": accepted,
        "accept_rate": accepted / drafted if drafted else 0.0, "draft_share": 0.25, "runs": runs,
        "by_source": {source: counts} if drafted else {},
    }  # fmt: skip


def measured(names, first: float = 100) -> dict:
    """Each method takes ten milliseconds less than the one before it."""
    times = {name: first - 10 * i for i, name in enumerate(["none", *names])}
    return {"methods": {name: result(ms, 0 if name == "none" else 40) for name, ms in times.items()}}


def search(skipped: list[int], speedup: float = 1.5, best: float | None = None) -> dict:
    return {"found": {
        "n_layers": 10, "skipped": skipped, "skipped_attention": sum(b % 2 == 0 for b in skipped),
        "skipped_mlp": sum(b % 2 for b in skipped), "speedup": speedup, "best_so_far": [0.5, best or speedup],
        "candidates": 7, "texts": 2, "seconds": 3.0, "planted": [4, 5, 6, 7], "planted_speedup": 1.2,
    }}  # fmt: skip


CALIBRATION = {"points": [{"rows": 1, "ms": 10.0}, {"rows": 32, "ms": 41.0}]}


def text_of(written) -> str:
    return "\n".join(written.lines)


def row_of(written, name: str) -> list[str]:
    return next([c.strip() for c in line.split("|")[1:-1]] for line in written.lines if line.startswith(f"| {name} |"))


class Settings(unittest.TestCase):
    def test_options_are_changed_in_place(self):
        self.assertEqual(changed("swift:skip=0.4:share=1", skip=0.6, tokens=9), "swift:skip=0.6:share=1:tokens=9")
        self.assertIn("threshold=0.7", KNAPSPEC)
        self.assertIn("share=1", SWIFT)

    def test_every_run_has_its_searches_and_no_method_twice(self):
        for name, bench in {**BENCHES, **SAME}.items():
            self.assertEqual(len(set(bench.methods.values())), len(bench.methods), name)
            self.assertNotIn("none", bench.methods)
            for spec in bench.methods.values():
                self.assertLessEqual(set(layers.searches_of(spec)), SEARCHES.keys())
        names = [search_file(name) for name in SEARCHES]
        self.assertEqual(len(set(names)), len(names))

    def test_results_have_the_names_of_tables(self):
        named = layers.by_name({"methods": {"none": 0, 'selfsd:layers="/a/b"': 1}}, {"selfsd": 'selfsd:layers="/a/b"'})
        self.assertEqual(named["methods"], {"none": 0, "selfsd": 1})


class Correlation(unittest.TestCase):
    def test_pearson(self):
        self.assertAlmostEqual(pearson([1, 2, 3], [2, 4, 6]), 1)
        self.assertAlmostEqual(pearson([1, 2, 3], [3, 2, 1]), -1)
        self.assertAlmostEqual(pearson([0, 0, 1, 1], [0, 1, 0, 1]), 0)
        self.assertIsNone(pearson([1, 1], [1, 2]))
        self.assertIsNone(pearson([], []))

    def test_spearman_sees_order_alone(self):
        self.assertAlmostEqual(spearman([1, 2, 30], [1, 100, 101]), 1)
        self.assertEqual(ranks([3, 1, 3, 2]), [2.5, 0, 2.5, 1])


class Speeds(unittest.TestCase):
    def test_ceiling_is_of_the_best_length(self):
        self.assertAlmostEqual(ceiling(0, 0.3, CALIBRATION), 1)
        by_hand = max(sum(0.9**i for i in range(n + 1)) / (0.2 * n + (10 + n) / 10) for n in range(26))
        self.assertAlmostEqual(ceiling(0.9, 0.2, CALIBRATION), by_hand)

    def test_speed_table(self):
        files = {"speeds": measured(["knapspec", "auto:layers=none", "auto"]), "calibration": CALIBRATION}
        files["speeds"]["methods"]["auto:layers=none"] = result(80, source="input")
        written = speed_section(files)
        cells = row_of(written, "`knapspec`")
        self.assertEqual(cells[1], "1.11 (1.11 to 1.11)")
        # A quarter of 90 ms for 40 tokens, over 100 ms of 20 steps.
        self.assertEqual(cells[4], f"{0.25 * 90 / 40 / 5:.2f}")
        self.assertEqual(row_of(written, "`auto:layers=none`")[2], "")
        words = " ".join(mixed_tree(files["speeds"]["methods"]))
        self.assertIn("`auto:layers=none`", words)
        self.assertIn("1.14 (", words)

    def test_nothing_drafted(self):
        methods = {"none": result(100, 0), "knapspec": result(100, 0)}
        files = {"speeds": {"methods": methods}, "calibration": CALIBRATION}
        self.assertEqual(row_of(speed_section(files), "`knapspec`")[2:5], ["", "", ""])

    def test_as_published(self):
        files = {name: measured(BENCHES[name].methods) for name in ("published-clasp", "swift-ablation")}
        files["search-draft-verify-as-published"] = search([], 1.0, best=0.8)
        written = published_section(files)
        self.assertEqual(row_of(written, "CLaSp as published")[1][:4], "1.11")
        self.assertEqual(row_of(written, "`swift`")[5], "2 of 2")
        self.assertIn("here it was 7 sets on 2", text_of(written))
        self.assertIn("(the best: 0.80)", text_of(written))
        self.assertEqual(len(cut_short({"search-draft-verify-as-published": search([4])})), 2)
        self.assertEqual(row_of(parts_section(files), "without early stopping")[-3:], ["0.90", "43 %", "11.16"])

    def test_sweeps(self):
        names = ("skip-searched", "skip-even", "knapspec-threshold", "knapspec-interval", "knapspec-cap")
        files = {name: measured(BENCHES[name].methods) for name in names}
        written = skip_section(files)
        self.assertEqual(text_of(written).count("| searched | 0."), 5)
        self.assertIn("even: speedup", written.plots["skip"])
        intervals = sweep_section(files, "interval")
        self.assertIn("2 prompts: 256.", text_of(intervals))
        self.assertEqual(list(intervals.plots), ["interval"])
        self.assertEqual(sweep_section({}, "cap").lines, [])


class Choices(unittest.TestCase):
    def test_what_is_expected_and_measured(self):
        names = list(BENCHES["objective"].methods)
        files = {"objective": measured(names, 200)}
        files |= {search_file(name): search([4, 5], 1 + i / 10) for i, name in enumerate(names)}
        files["objective"]["methods"][names[0]] = result(200, 0)  # no set pays
        points = objective_points(files)
        self.assertNotIn(names[0], points)
        self.assertEqual(points[names[1]][0], 2)
        self.assertAlmostEqual(points[names[1]][1], 1.1)
        self.assertEqual(points["even, 45%"][:2], (9, 0.5))
        self.assertIn("| expected speed | knapsack's sets | 8 |", "\n".join(correlation_table(points)))
        self.assertEqual(objective_section(files).plots["objective"].count("<circle"), len(points))

    def test_searches(self):
        files = {search_file(name): search([4, 5, 7, 8]) for name in FIND}
        written = found_section(files)
        self.assertEqual(row_of(written, "bayesian"), ["bayesian", "2", "2", "3 of 4", "1.50", "1.25", "7", "3"])
        self.assertEqual(set(written.plots), {"searches", "layers"})
        for drawn in written.plots.values():
            xml.dom.minidom.parseString(drawn)
        picture = layer_picture({"a & b": [0, 3]}, 4)
        self.assertIn("a &amp; b", picture)
        self.assertEqual(picture.count("<rect"), 4)

    def test_long_texts(self):
        files = {f"context-{n}": measured(["knapspec", "swift", "auto"]) for n in (512, 16384)}
        files |= {f"search-context-{n}": search([2, 3, 4]) for n in (512, 16384)}
        written = context_section(files)
        self.assertEqual(row_of(written, "16,384")[1:5], ["2", "1", "1.50", "1.11"])
        del files["context-16384"]["methods"]["swift"]
        self.assertEqual(row_of(context_section(files), "16,384")[5], "")
        self.assertEqual(context_section({}).lines, [])

    def test_small_and_same(self):
        files = {name: measured(bench.methods, 200) for name, bench in {**BENCHES, **SAME}.items()}
        written = small_section(files)
        self.assertEqual(row_of(written, "`auto`, `none`")[4][:4], "1.00")
        self.assertEqual(row_of(same_section(files), "`gemma3-270m`, greedy")[1:], ["2 of 2"] * 8)


class WholePage(unittest.TestCase):
    def test_nothing_is_needed(self):
        identity = {"threads": 2, "n_prompts": 12, "tokens": 64}
        made = {"identity": identity, "measured": {"on": "x", "date": "2026-01-01"}}
        lines = layers.Layers().write({"speeds": {**measured(BENCHES["speeds"].methods, 200), **made}}).lines
        self.assertEqual([line for line in lines if line.startswith("## ")], ["## Speed"])


if __name__ == "__main__":
    unittest.main()
