"""When a page measures, what it keeps, and what it writes."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "results"))

from library import first_tokens
from library.page import RESULTS, ROOT, Measurement, Page, Written, hardware, replace_marked, rounded, span
from library.program import Program, ProgramFailed
from library.setup import Setup

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


class Answers(Page):
    """A page of one setting."""

    name = "answers"

    def measurements(self, setup: Setup) -> list[Measurement]:
        return [Measurement("one", setup.identity(), lambda: setup.bench("m", ["auto"], "--temp", 0))]

    def write(self, files: dict[str, dict]) -> Written:
        return Written([f"# {len(files)}"], plots={"lines": "<svg/>"}, parts={ROOT / "README.md": ["nothing"]})


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
        with mock.patch.object(sys, "stderr"), mock.patch("builtins.print"):
            Answers().main(["--prompts", str(self.prompts), "--program", str(self.program),
                            "--output", str(self.folder / "out"), "--threads", "1", *arguments])  # fmt: skip
        log = self.program.with_suffix(".log")
        return len(log.read_text().splitlines()) if log.exists() else 0

    def test_what_is_there_is_not_measured_again(self):
        self.assertEqual(self.measure("--list"), 0)
        self.assertEqual(self.measure(), 1)
        result = json.loads((self.folder / "out" / "one.json").read_text())
        self.assertEqual(list(result["methods"]), ["none", "auto"])
        self.assertEqual(result["methods"]["auto"]["runs"][0]["decode_ms"], 1.2346)
        self.assertIn("date", result["measured"])
        self.assertEqual(self.measure(), 1)
        self.assertEqual(self.measure("--again"), 2)
        self.assertEqual(self.measure("--tokens", "7"), 3)
        self.prompts.write_text('{"category": "chat", "turns": ["Why not?"]}\n')
        self.assertEqual(self.measure("--tokens", "7"), 4)
        self.assertEqual(self.measure("--tokens", "7", "--only", "two*"), 4)

    def test_a_page_elsewhere_leaves_the_published_ones_alone(self):
        readme = (ROOT / "README.md").read_text()
        self.measure()
        self.assertEqual((self.folder / "answers.md").read_text(), "# 1\n")
        self.assertEqual((self.folder / "out" / "lines.svg").read_text(), "<svg/>")
        self.assertEqual((ROOT / "README.md").read_text(), readme)
        self.assertFalse((RESULTS / "answers.md").exists())

    def test_what_fails_is_said(self):
        self.program.write_text("#!/bin/sh\necho no room >&2; exit 1\n")
        with mock.patch.object(sys, "stderr"), self.assertRaisesRegex(ProgramFailed, "no room"):
            Program(str(self.program), threads=1).run("run", model="m")

    def test_artefacts_are_made_once(self):
        options = Answers().parse(["--prompts", str(self.prompts), "--model", "m=other.gguf"])
        setup = Setup(options, work=self.folder / "work")
        self.assertEqual(setup.model("m"), "other.gguf")
        for text in ("first", "second"):
            path = setup.artefact("a/file", lambda path, text=text: path.write_text(text))
        self.assertEqual(path.read_text(), "first")

    def test_quick_is_small_unless_told(self):
        options = Answers().parse(["--quick", "--prompts", str(self.prompts), "--tokens", "5"])
        self.assertEqual((options.n_prompts, options.tokens), (2, 5))
        self.assertIn("results-quick", str(options.output))

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


class Writing(unittest.TestCase):
    def test_only_what_is_marked_is_replaced(self):
        begin, end = "<!-- a: begin, by scripts/results/a.py -->", "<!-- a: end -->"
        text = f"before\n{begin}\nold\n{end}\nafter\n"
        self.assertEqual(replace_marked(text, "a", ["new", "lines"]), f"before\n{begin}\nnew\nlines\n{end}\nafter\n")
        for broken in ("no marks\n", f"{begin}\n", f"{end}\n{begin}\n"):
            with self.assertRaises(ValueError):
                replace_marked(broken, "a", [])

    def test_circumstances(self):
        files = [{"identity": {"threads": 2, "n": n}, "measured": {"on": "CPU", "date": date}}
                 for n, date in ((3, "2026-01-02"), (5, "2026-01-01"))]  # fmt: skip
        self.assertEqual(hardware(files), "2 threads of CPU, 2026-01-01 to 2026-01-02")
        files[0]["measured"]["side_by_side"] = 4
        self.assertIn("up to 4 commands side by side", hardware(files))
        self.assertEqual((span(files, "n"), span(files[:1], "n")), ("3 to 5", "3"))
        self.assertEqual(rounded({"a": [1.23456789, 123456.789]}), {"a": [1.2346, 123460.0]})


if __name__ == "__main__":
    unittest.main()
