"""What the tables of speculation are made of, and when a setting is measured."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import speculation_results
from forerun_results import first_tokens
from forerun_results.speculation_settings import Setting, all_settings
from forerun_results.speculation_tables import (
    BEGIN, END, best_single, first_token_table, over_best, published_table, readme_table, replace_marked, tables,
)  # fmt: skip

CATEGORIES = ["chat", "chat", "math"]
# By method, the decode time of each of three prompts.
TIMES = {"none": [100, 100, 200], "auto": [50, 40, 110], "sssd": [50, 50, 125], "pld": [80, 80, 100]}

# Writes what `bench spec --json FILE` would, and says when it was run, with what.
FAKE_PROGRAM = """#!/usr/bin/env python3
import json, sys
from pathlib import Path
arguments = dict(zip(sys.argv[3::2], sys.argv[4::2]))
with open(Path(__file__).with_suffix(".log"), "a") as log:
    print(json.dumps(sys.argv[1:]), file=log)
run = {"category": "chat", "decode_ms": 1.23456789, "tokens": 3, "identical": True}
result = {"prompts": 1, "identical": 1, "tokens_per_step": 2.0, "runs": [run]}
methods = {name: result for name in ["none", *arguments["--methods"].split(",")]}
Path(arguments["--json"]).write_text(json.dumps({"forerun": "0", "methods": methods}))
"""

# Writes two pieces and the end of the line, like `forerun run`.
FAKE_ANSWER = """
import time
for piece in ("one", " two"):
    time.sleep(0.05)
    print(piece, end="", flush=True)
time.sleep(0.05)
print(flush=True)
"""

# Says which method it was run with, and in which cache, which must be empty and is not afterwards.
FAKE_UNSEEN = """#!/usr/bin/env python3
import os, sys
from pathlib import Path
cache = Path(os.environ["XDG_CACHE_HOME"])
assert not list(cache.iterdir())
(cache / "calibration").touch()
with open(Path(__file__).with_suffix(".log"), "a") as log:
    print(sys.argv[sys.argv.index("--spec") + 1], cache, file=log)
print("text")
"""


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

    def test_arguments(self):
        setting = Setting("n", "m", ("auto", "draft"), draft=True, batch=8, temperature=0.8)
        arguments = [str(part) for part in speculation_results.bench_arguments(setting, Path("p"), 60, 128, Path("s"))]
        pairs = dict(zip(arguments[2::2], arguments[3::2]))
        self.assertEqual(arguments[:2], ["bench", "spec"])
        self.assertEqual((pairs["--methods"], pairs["--batch"], pairs["--temp"]), ("auto,draft", "8", "0.8"))
        self.assertEqual((pairs["--limit"], pairs["-n"], pairs["--live"]), ("60", "128", "s/live"))
        self.assertTrue(Path(pairs["--draft-model"]).exists())
        plain = Setting("n", "m", ("pld",), live=False, tree="own")
        arguments = [str(part) for part in speculation_results.bench_arguments(plain, Path("p"), 6, 8, Path("s"))]
        self.assertEqual(arguments[-2:], ["--tree", "own"])
        self.assertFalse({"--draft-model", "--live"} & set(arguments))


class Tables(unittest.TestCase):
    def test_the_best_single_method(self):
        methods = measured()
        self.assertEqual([best_single(methods), best_single(methods, "chat"), best_single(methods, "math")], ["sssd", "sssd", "pld"])
        self.assertAlmostEqual(over_best(methods), 225 / 200)
        self.assertAlmostEqual(over_best(methods, "chat"), 100 / 90)
        self.assertAlmostEqual(over_best(methods, "math"), 100 / 110)

    def test_a_page(self):
        lines = tables(results={"smollm2": measured(), "smollm2-8-at-once": measured()}, first_tokens={})
        text = "\n".join(lines)
        self.assertEqual([line for line in lines if line.startswith("## ")], ["## SmolLM2-135M, Q4_1", "## Several requests at once"])
        self.assertRegex(text, r"\| texts, own layers \| 2\.00 \([^)]*\) \| `sssd` 1\.78 \| 1\.12 \([^)]*\) \| 1\.50 \| 3 of 3 \|")
        self.assertIn("| `auto`, texts, own layers | 2.22 | 1.82 |\n| best single method | `sssd` 2.00 | `pld` 2.00 |\n| `auto` over it | 1.11 | 0.91 |", text)
        self.assertRegex(text, r"\| SmolLM2-135M, Q4_1 \| 8 \| texts, own layers \| 2\.00 ")
        for line in lines:  # every table's rows have as many cells as its head
            if line.startswith("|---"):
                head = lines[lines.index(line) - 1]
                self.assertEqual(line.count("|"), head.count("|"))

    def test_readme(self):
        lines = readme_table({"smollm2-q8-draft": measured()})
        self.assertEqual(
            lines[2:], ["| SmolLM2-135M, Q8_0 | and a draft model | 2.00 | `sssd` 1.78 | 1.50 | chat 2.22, math 1.82 |", ""]
        )
        self.assertEqual(readme_table({}), [])

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

    def test_only_what_is_marked_is_replaced(self):
        text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
        self.assertEqual(replace_marked(text, ["new", "lines"]), f"before\n{BEGIN}\nnew\nlines\n{END}\nafter\n")
        for broken in ("no marks\n", f"{BEGIN}\n", f"{END}\n{BEGIN}\n"):
            with self.assertRaises(ValueError):
                replace_marked(broken, [])
        replace_marked((speculation_results.ROOT / "README.md").read_text(), [])


class Measuring(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "forerun"
        self.program.write_text(FAKE_PROGRAM)
        self.program.chmod(0o755)
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text('{"category": "chat", "turns": ["Why?"]}\n')

    def measure(self, *arguments: str) -> int:
        """Returns how many commands have run so far."""
        command = ["speculation_results.py", "--prompts", str(self.prompts), "--program", str(self.program),
                   "--output", str(self.folder / "out"), "--threads", "1", "--only", "smollm2-sampled", *arguments]  # fmt: skip
        with mock.patch.object(sys, "argv", command), mock.patch.object(sys, "stderr"), mock.patch("builtins.print"):
            speculation_results.main()
        log = self.program.with_suffix(".log")
        return len(log.read_text().splitlines()) if log.exists() else 0

    def test_what_is_there_is_not_measured_again(self):
        self.assertEqual(self.measure("--list"), 0)
        self.assertEqual(self.measure(), 1)
        result = json.loads((self.folder / "out" / "smollm2-sampled.json").read_text())
        self.assertEqual(list(result["methods"]), ["none", "auto"])
        self.assertEqual(result["methods"]["auto"]["runs"][0]["decode_ms"], 1.2346)
        self.assertIn("date", result["measured"])
        self.assertEqual(self.measure(), 1)
        self.assertEqual(self.measure("--again"), 2)
        self.assertEqual(self.measure("--tokens", "7"), 3)
        self.prompts.write_text('{"category": "chat", "turns": ["Why not?"]}\n')
        self.assertEqual(self.measure("--tokens", "7"), 4)

    def test_a_try_leaves_the_pages_alone(self):
        self.measure()
        readme = (speculation_results.ROOT / "README.md").read_text()
        command = ["speculation_results.py", "--render", "--quick", "--output", str(self.folder / "out")]
        with mock.patch.object(sys, "argv", command), mock.patch("builtins.print"):
            speculation_results.main()
        page = (self.folder / "out" / "speculation.md").read_text()
        self.assertIn("## At temperature 0.8\n", page)
        self.assertIn("60 prompts, alike of every category, answers of up to 128 tokens", page)
        self.assertEqual((speculation_results.ROOT / "README.md").read_text(), readme)

    def test_first_tokens_are_timed_as_they_come(self):
        times = first_tokens.times_of([sys.executable, "-c", FAKE_ANSWER], dict(os.environ))
        self.assertLess(times["first_ms"], times["last_ms"])
        for text, n_pieces in ((b"text", 1), (b"\n", 0)):  # the end of the line is no part of the answer
            read, write = os.pipe()
            os.write(write, text)
            os.close(write)
            self.assertEqual(len(list(first_tokens.arrivals(read))), n_pieces)
            os.close(read)
        with self.assertRaises(RuntimeError):
            first_tokens.times_of([sys.executable, "-c", "import sys; sys.exit('no')"], dict(os.environ))

    def test_a_model_never_seen_has_no_cache(self):
        self.program.write_text(FAKE_UNSEEN)
        found = first_tokens.measure(str(self.program), str(self.prompts), "Why?", threads=1, repeats=2)
        self.assertEqual({method: len(runs) for method, runs in found.items()}, {"auto": 2, "none": 2})
        lines = self.program.with_suffix(".log").read_text().splitlines()
        methods, caches = zip(*(line.split() for line in lines))
        self.assertEqual(methods, ("auto", "none", "none", "auto"))
        self.assertEqual(len(set(caches)), 4)


if __name__ == "__main__":
    unittest.main()
