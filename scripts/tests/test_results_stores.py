"""What the tables of drafts from texts are made of, and which prompts and texts are measured."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

from library import svg
from library.stores_measured import (
    by_set, drafting_us, last_runs, latency_ms, of_100, of_kind, speed_with_prompts, sssd, store_only, throughput,
)  # fmt: skip
from library.setup import parted
from library.stores_prompts import alike, first_turns, halves, random_prompts, text_files, text_of, write_texts
from library.stores_scale_tables import batches_section, dilution, plots, retrieval_section, size_row, where_faster
from library.stores_tables import SECTIONS, best_baseline, source_rows, sum_rows, tables

from stores import Stores, numbers

VARIANTS = ("sssd", "sssd:variant=paper", "sssd:variant=code")
STORE_ONLY = tuple(f"{name}:input-window=1" for name in VARIANTS)


def run(ms: float = 100, steps: int = 50, accepted: int = 50, identical: bool = True) -> dict:
    return {"category": "a", "tokens": 100, "identical": identical, "prompt_ms": 100, "decode_ms": ms, "steps": steps,
            "drafted": 2 * accepted, "accepted": accepted}  # fmt: skip


def result(ms: float = 100, tokens_per_step: float = 1.5, runs: list[dict] | None = None) -> dict:
    runs = runs or [run(ms), run(ms)]
    return {"prompts": len(runs), "identical": len(runs), "tokens": 200, "tokens_per_step": tokens_per_step,
            "drafted": 200, "draft_share": 0.02, "by_source": {"datastore": {"accepted": 30}},
            "runs": runs}  # fmt: skip


def measured(kind: str, methods: dict[str, dict], **identity: object) -> dict:
    common = {"kind": kind, "set": "main", "prompts": "x", "set_prompts": "x", "n_prompts": 1, "tokens": 9}
    return {
        "identity": {**common, "threads": 2, **identity},
        "measured": {"on": "a machine", "date": "2026-01-01"},
        "methods": {"none": result(200, 1), **methods},
        "stores": [{"tokens": 1000, "documents": 10, "size_bytes": 6100}],
    }


def everything() -> list[dict]:
    """A file of each kind."""
    batch = {"sssd": result(), "auto": result()}
    times = {"median": 1.0, "p99": 2.0}
    retrieval = {"tokens": 10**8, "segments": 8, "threads": 2, "build_tokens_per_second": 15e6, "bytes_per_token": 6.06,
                 "peak_bytes_per_token": 12.0, "search_us": times, "step_us": times, "folding_step_us": times,
                 "folded_tokens": 7}  # fmt: skip
    return [
        measured("input", {name: result() for name in VARIANTS}),
        measured("store", {name: result() for name in (*VARIANTS, *STORE_ONLY, "auto")}),
        measured("baselines", {name: result() for name in ("sssd", "pld", "rest", "pia", "suffix")}),
        measured("warm", {name: result() for name in ("pia", "suffix")}),
        measured("roofline", {name: result() for name in VARIANTS}),
        measured("foreign", {"sssd": result()}, size=1000, texts=["docs"]),
        measured("diluted", {"sssd": result()}, size=1000, texts=["docs"]),
        *(measured("batch", batch, batch=n, batch_tokens=32, fill=9) for n in (8, 1)),
        {**measured("retrieval", {}), "result": retrieval},
        measured("random", {"auto": result()}, model="smollm2"),
    ]


class Prompts(unittest.TestCase):
    PROMPTS = [{"id": i, "category": "chat" if i < 6 else "sums"} for i in range(8)]

    def ids(self, prompts: list[dict]) -> list[int]:
        return [prompt["id"] for prompt in prompts]

    def test_alike_of_every_category(self):
        self.assertEqual(self.ids(alike(self.PROMPTS, 4)), [0, 1, 6, 7])
        self.assertEqual(self.ids(alike(self.PROMPTS, 6)), [0, 1, 2, 3, 6, 7])
        self.assertEqual(self.ids(alike(self.PROMPTS, 99)), list(range(8)))
        chosen, others = parted(self.PROMPTS, 3)
        self.assertEqual((self.ids(chosen), self.ids(others)), ([0, 1, 6], [2, 3, 4, 5, 7]))

    def test_none_is_measured_whose_answer_is_in_the_store(self):
        for n_prompts in (2, 3, 8):
            prompts = halves("p", self.PROMPTS[:n_prompts], "digest", 30, 48)
            self.assertTrue(prompts.measured and prompts.fill)
            self.assertFalse(set(self.ids(prompts.measured)) & set(self.ids(prompts.fill)))
        self.assertEqual(len(halves("p", self.PROMPTS, "digest", 1, 2).fill), 2)
        with self.assertRaises(ValueError):
            halves("p", self.PROMPTS[:1], "digest", 1, 1)

    def test_first_turns(self):
        self.assertEqual(first_turns({"turns": ["a", "b"]}), {"turns": ["a"]})
        self.assertEqual(first_turns({"text": "a"}), {"text": "a"})

    def test_random_words_are_the_same_each_time(self):
        self.assertEqual(random_prompts(3), random_prompts(5)[:3])
        self.assertEqual(len({prompt["turns"][0] for prompt in random_prompts(5)}), 5)

    def test_numbers(self):
        self.assertEqual(numbers("1e5,20"), [100000, 20])


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def test_what_is_no_text_is_empty(self):
        self.assertEqual(text_of(self.write("a", "naïve".encode())), "naïve")
        for content in (b"a\0b", b"\xff\xfe"):
            self.assertEqual(text_of(self.write("b", content)), "")
        self.assertEqual(text_of(self.folder / "missing"), "")

    def test_the_order_does_not_depend_on_where_folders_are(self):
        for name in "abcde":
            self.write(f"sub/{name}", name.encode())
        names = [path.name for path in text_files([self.folder / "texts"])]
        (self.folder / "texts").rename(self.folder / "elsewhere")
        self.assertEqual([path.name for path in text_files([self.folder / "elsewhere"])], names)
        self.assertEqual(sorted(names), list("abcde"))

    def test_as_many_characters_as_wanted(self):
        files = [self.write("a", b"abcd"), self.write("b", b"\0"), self.write("c", b"efgh"), self.write("d", b"ij")]

        def written(n: int) -> list[str]:
            write_texts(self.folder / "out", files, n)
            return [json.loads(line)["text"] for line in (self.folder / "out").read_text().splitlines()]

        self.assertEqual(written(6), ["abcd", "ef"])
        self.assertEqual(written(4), ["abcd"])
        self.assertEqual(written(99), ["abcd", "efgh", "ij"])


class Computed(unittest.TestCase):
    def test_names(self):
        self.assertEqual([sssd("pooled"), store_only("pooled")], ["sssd", "sssd:input-window=1"])
        self.assertEqual(store_only("paper"), "sssd:variant=paper:input-window=1")

    def test_of_methods(self):
        self.assertAlmostEqual(drafting_us(result(100)), 1000 * 0.02 * 200 / 100)
        self.assertAlmostEqual(of_100(result(), "datastore"), 15)
        self.assertEqual(of_100(result(), "input"), 0)

    def test_the_last_runs_count_alone(self):
        runs = [run(identical=False, accepted=0), run(steps=40, accepted=60), run(steps=60, accepted=0)]
        found = last_runs(result(runs=runs), 2)
        self.assertEqual((found["prompts"], found["identical"], found["drafted"], len(found["runs"])), (2, 2, 120, 2))
        self.assertAlmostEqual(found["tokens_per_step"], 1.6)

    def test_batches(self):
        file = measured("batch", {"sssd": result(100)}, batch=8)
        self.assertAlmostEqual(throughput(file, "sssd"), 1000)
        self.assertAlmostEqual(latency_ms(file, "sssd"), 8)
        self.assertAlmostEqual(speed_with_prompts(file["methods"], "sssd"), 600 / 400)

    def test_files_are_in_order(self):
        files = [measured("input", {}, set="a", set_prompts="other"), measured("input", {})]
        files += [measured("batch", {}, batch=n) for n in (16, 2)]
        self.assertEqual(list(by_set(files, "input")), ["main", "a"])
        self.assertEqual([file["identity"]["batch"] for file in of_kind(files, "batch")], [2, 16])


class Tables(unittest.TestCase):
    def test_a_page(self):
        lines = tables(everything())
        self.assertEqual([line for line in lines if line.startswith("## ")], SECTIONS)
        for i, line in enumerate(lines):  # every table's rows have as many cells as its head
            if line.startswith("|---"):
                width = line.count("|")
                self.assertEqual(lines[i - 1].count("|"), width)
                self.assertEqual(lines[i + 1].count("|"), width)
        pictures = [line for line in lines if line.startswith("![")]
        drawn = plots(everything())
        self.assertEqual(len(pictures), len(drawn))
        for name in drawn:
            self.assertTrue(any(f"(stores/{name}.svg)" in line for line in pictures))
        page = Stores().write({str(i): file for i, file in enumerate(everything())})
        self.assertEqual(page.lines[0], "# Drafts from texts, measured")

    def test_nothing_is_made_of_nothing(self):
        self.assertEqual(tables([]), [])
        self.assertEqual(plots([]), {})
        for file in everything():
            tables([file])
            plots([file])

    def test_sources(self):
        alone = {"none": result(200), **{name: result(160, 1.2) for name in VARIANTS}}
        stored = {"none": result(200), **{name: result(180, 1.1) for name in STORE_ONLY},
                  **{name: result(100, 1.24) for name in (*VARIANTS, "auto")}}  # fmt: skip
        rows = source_rows("main", alone, stored)
        self.assertEqual([row[2] for row in rows[:3]], ["input", "store", "both"])
        self.assertEqual(rows[2][3:], ["2.00 (2.00 to 2.00)", "1.24", "0.0", "15.0", "2 of 2"])
        self.assertEqual(sum_rows("main", alone, stored)[0], ["main", "pooled", "0.20", "0.10", "0.30", "0.24", "80 %"])
        for methods in (alone, stored):
            for each in methods.values():
                each["tokens_per_step"] = 1.0
        self.assertEqual(sum_rows("main", alone, stored)[0][-1], "")

    def test_the_best_baseline(self):
        times = {"sssd": 50, "pld": 200, "rest": 100, "pia": 150, "suffix": 101}
        methods = {name: result(ms) for name, ms in times.items()}
        self.assertIn("`sssd` is 2.00 (2.00 to 2.00) times as fast as `rest`", best_baseline("main", methods))

    def test_sizes(self):
        file = measured("foreign", {"sssd": result(100)}, size=1000)
        cells = ["w", "1,000", "2.00 (2.00 to 2.00)", "1.50", "15.0", "2.0 %", "40", "6.10"]
        self.assertEqual(size_row("w", file), cells)
        self.assertEqual(size_row("none", {**file, "stores": []})[1], "0")
        larger = {**file, "stores": [{"tokens": 10**6, "size_bytes": 1}]}
        self.assertIn("15.0 where it has 1,000 times as many tokens", " ".join(dilution(file, larger)))

    def test_batches(self):
        slow, fast = ({"sssd": result(ms), "auto": result(ms)} for ms in (250, 100))
        files = [measured("batch", methods, batch=n, batch_tokens=32, fill=9) for n, methods in ((1, fast), (8, slow))]
        self.assertIn("| 1 | 500 per s, 2.0 ms | 1000 per s, 1.0 ms |", "\n".join(batches_section("## B", files)))
        self.assertEqual(where_faster(files, "sssd"), "`sssd` is faster than plain decoding with 1 at once.")
        self.assertEqual(where_faster(files[:1], "sssd"), "`sssd` is faster than plain decoding everywhere.")
        self.assertEqual(where_faster(files[1:], "sssd"), "`sssd` is nowhere faster.")

    def test_long_axes_have_powers_of_ten(self):
        self.assertEqual(svg.log_ticks(1.1e5, 2e8), [1e5, 1e6, 1e7, 1e8])
        self.assertEqual(svg.log_ticks(1, 16), [1, 2, 4, 8, 16])

    def test_stores_without_a_model(self):
        lines = retrieval_section("## R", everything())
        self.assertIn("| threads | 2 |", lines)
        self.assertIn("| building | 15.0 million tokens per second |", lines)


if __name__ == "__main__":
    unittest.main()
