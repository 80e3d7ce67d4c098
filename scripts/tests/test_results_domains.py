"""The page of layers by domain: how prompts are divided, and tables from made-up results."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

import domains  # noqa: E402
from library import domains_tables as tables  # noqa: E402
from library.domains_prompts import by_domain, divided  # noqa: E402

NAMES = ("sums", "tales")


def result(ms: float, drafted: int = 10, category: str = "sums", n: int = 2) -> dict:
    run = {"category": category, "decode_ms": ms, "drafted": drafted, "accepted": drafted // 2}
    return {"prompts": n, "identical": n, "accept_rate": 0.5, "drafted": drafted * n, "tokens_per_step": 1.5,
            "runs": [run] * n}  # fmt: skip


def built(*found: tuple[str, dict[str, int]]) -> dict:
    return {"n_blocks": 8, "domains": [
        {"name": name, "prompts": sum(categories.values()), "categories": categories, "skipped": [0, 1, 2, 3 + i],
         "at_home": {"mean": 2, "last": 1}, "skipped_attention": 3, "skipped_mlp": 4, "speedup": 1.5}
        for i, (name, categories) in enumerate(found)
    ]}  # fmt: skip


def files() -> dict[str, dict]:
    identity = {"threads": 2, "tokens": 48, "build_prompts": 6, "texts": 4, "search_tokens": 24}
    measured = {"on": "a machine", "date": "2026-01-01"}
    found: dict[str, dict] = {
        "labelled": {"built": built(("sums", {"sums": 3}), ("tales", {"tales": 3}))},
        "unlabelled": {"built": built(("1", {"sums": 3, "tales": 1}), ("2", {"tales": 2}))},
    }
    for ratio in (0.3, 0.7):
        methods = {"none": result(100, 0), "shared": result(80), "labelled": result(50), "unlabelled": result(64),
                   "swift": result(90), "knapspec": result(60), "auto": result(55)}  # fmt: skip
        found[f"stream-{ratio}"] = {"ratio": ratio, "methods": methods}
    for b in NAMES:
        own = {a: result(50 if a == b else 125, category=b) for a in NAMES}
        found[f"matrix-{b}"] = {"domain": b, "methods": {"none": result(100, 0, b), **own}}
        outside = {"nothing": result(100, 0, b), "nearest": result(125), "uniform": result(200), "own": result(50)}
        found[f"outside-{b}"] = {"domain": b, "methods": {"none": result(100, 0, b), **outside}}
    return {name: {"identity": identity, "measured": measured, **file} for name, file in found.items()}


class TestPrompts(unittest.TestCase):
    def read(self, *categories: str) -> dict[str, list[dict]]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prompts.jsonl"
            prompts = [{"id": i, "category": c, "turns": [f"{c}{i}", "and?"]} for i, c in enumerate(categories)]
            path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
            return by_domain(path)

    def test_first_turns_by_category(self):
        found = self.read("a", "b", "a")
        self.assertEqual({name: [p["turns"] for p in of] for name, of in found.items()},
                         {"a": [["a0"], ["a2"]], "b": [["b1"]]})  # fmt: skip

    def test_one_category_is_made_two_domains(self):
        found = self.read("a", "a", "a")
        self.assertEqual({name: [p["id"] for p in of] for name, of in found.items()}, {"a-1": [0, 2], "a-2": [1]})
        self.assertEqual({p["category"] for p in found["a-2"]}, {"a-2"})

    def test_what_is_measured_was_not_built_from(self):
        found = divided(self.read(*"ab" * 10), 6, 8)
        for part in found.values():
            self.assertEqual((len(part["build"]), len(part["measure"])), (6, 4))
            self.assertFalse({p["id"] for p in part["build"]} & {p["id"] for p in part["measure"]})
        few = divided(self.read(*"ab" * 5), 6, 6)["a"]
        self.assertEqual((len(few["build"]), len(few["measure"])), (2, 3))

    def test_too_few_prompts_are_used_twice(self):
        part = divided(self.read("a", "b"), 6, 2)["a"]
        self.assertEqual([p["id"] for p in part["build"]], [0, 0])
        self.assertEqual([p["id"] for p in part["measure"]], [0])


class TestTables(unittest.TestCase):
    def test_every_section_has_a_table(self):
        text = "\n".join(domains.Domains().write(files()).lines)
        for title in domains.Domains.sections:
            following = text.split(title + "\n")[1].split("\n## ")[0]
            self.assertIn("\n|---", following, title)

    def test_what_was_not_measured_is_left_out(self):
        some = {name: file for name, file in files().items() if name == "labelled"}
        text = "\n".join(domains.Domains().write(some).lines)
        self.assertIn(tables.ROUTING, text)
        self.assertNotIn(tables.MATRIX, text)

    def test_matrix(self):
        lines = tables.matrix_section(files())
        self.assertIn("| of sums | **2.00** | 0.80 |", lines)
        self.assertIn("| of tales | 0.80 | **2.00** |", lines)
        self.assertIn("2 of 2 domains their own", " ".join(lines))

    def test_routing(self):
        lines = tables.routing_section(files())
        self.assertIn("| sums | 3 | 2 | 1 | 3 and 4 | 1 | 1.50 |", lines)
        self.assertIn("| all | 6 | 4 (67%) | 2 (33%) |  |  |  |", lines)

    def test_streams(self):
        words = " ".join(tables.stream_section(files()))
        self.assertIn("routed layers are 1.60 times as fast", words)
        self.assertIn("with domains that were found 1.25 times", words)
        self.assertEqual(list(tables.plots(files())), ["streams"])
        self.assertAlmostEqual(tables.paper_over(), 1.165, places=2)

    def test_purity(self):
        self.assertEqual(tables.purity(files()["unlabelled"]["built"]["domains"]), (5, 6))
        self.assertIn("| 1 | 4 | sums 3, tales 1 | 2 | 1.50 |", tables.found_section(files()))

    def test_outside(self):
        lines = tables.outside_section(files())
        self.assertIn("| sums | 0 of 2 | 1.00, - | 0.80, 0.50 | 0.50, 0.50 | 2.00, 0.50 |", lines)
        self.assertIn("| all |  | 1.00 | 0.80 | 0.50 | 2.00 |", lines)


if __name__ == "__main__":
    unittest.main()
