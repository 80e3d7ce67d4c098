"""Sets of layers, searched, shown and drafted with as people do it."""

import json
import signal
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model

TINY = ["-m", model("tiny-llama"), *QUICK]
OTHER = ["-m", model("tiny-qwen3"), *QUICK]
# A search that finds little, in no time.
BRIEF = ["--texts", "3", "--tokens", "12", "--candidates", "30"]
PROMPTS = ["Once upon a time", "One, two, three,", "The sea was", "Why is the sky blue?"]


class Layers(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "layers.json"
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))

    def search(self, *arguments) -> dict:
        return self.succeed_json(
            "layers", "search", *TINY, *BRIEF, "--prompts", self.prompts, "-o", self.file, *arguments
        )

    def write_set(self, skipped: list[int]) -> None:
        """A set that pays or not, as if it had been found."""
        kept = json.loads(self.file.read_text())
        kept["skipped"] = skipped
        self.file.write_text(json.dumps(kept))

    def test_every_method_and_objective(self):
        # As many tokens as the first three prompts' answers have, which may end early.
        ask = ["run", *TINY, "-n", "12", "--temp", "0", "--spec", "none"]
        n_tokens = [len(self.succeed_json(*ask, "-p", prompt)["tokens"]) for prompt in PROMPTS[:3]]
        for method in ("neighbour", "bayesian", "knapspec", "swift", "selfsd"):
            found = self.search("--method", method, "--candidates", "8")
            self.assertEqual(found["method"], method)
            self.assertEqual(found["objective"], "measured" if method == "selfsd" else "expected")
            self.assertEqual((found["texts"], found["tokens"]), (sum(n > 0 for n in n_tokens), sum(n_tokens)))
            if method != "knapspec":  # it has as many as there are weights
                self.assertEqual(found["candidates"], 8)
            kept = json.loads(self.file.read_text())
            self.assertEqual(kept["skipped"], found["skipped"])
            self.assertEqual(len(kept["found"]["best_so_far"]), found["candidates"])
        measured = ["--objective", "measured", "--candidates", "3"]
        self.assertEqual(self.search(*measured, "--method", "neighbour")["objective"], "measured")
        self.fail_with("another method", "layers", "search", *TINY, *BRIEF, "--prompts", self.prompts, "-o", self.file, *measured)

    def test_the_same_search_finds_the_same(self):
        first = self.search("--method", "bayesian", "--seed", "3")
        self.assertEqual(self.search("--method", "bayesian", "--seed", "3")["skipped"], first["skipped"])

    def test_show(self):
        self.search()
        self.write_set([1, 2])
        other = self.folder / "other.json"
        other.write_text(self.file.read_text())
        picture = self.folder / "layers.svg"
        shown = self.succeed("layers", "show", self.file, other, "--svg", picture).stdout.decode()
        self.assertEqual(shown.count("blocks left out"), 2)
        self.assertRegex(shown, "attention +█·")
        self.assertRegex(shown, "MLP +·█")
        root = xml.etree.ElementTree.parse(picture).getroot()
        n_layers = self.succeed_json("layers", "show", self.file)["sets"][0]["n_layers"]
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}rect")), 2 * 2 * n_layers)
        listed = self.succeed_json("layers", "show", self.file, "-m", model("tiny-llama"))["sets"][0]
        self.assertEqual((listed["skipped"], listed["skipped_attention"], listed["skipped_mlp"]), ([1, 2], 1, 1))

    def test_drafts_with_the_file(self):
        self.search()
        ask = ["run", *TINY, "-p", PROMPTS[0], "-n", "30", "--temp", "0", "--ignore-eos"]
        plain = self.succeed_json(*ask, "--spec", "none")
        drafting = ["--spec", "selfsd", "--selfsd-layers", self.file, "--selfsd-threshold", "0"]
        for skipped, drafts in (([3], True), ([], False)):
            self.write_set(skipped)
            drafted = self.succeed_json(*ask, *drafting)
            self.assertEqual(drafted["tokens"], plain["tokens"])
            self.assertEqual(drafted["speculation"]["drafted"] > 0, drafts)
        self.write_set([3])
        bench = self.folder / "bench.json"
        self.succeed("bench", "spec", *TINY, "--prompts", self.prompts, "-n", "8", "--json", bench,
                     "--methods", f"none,selfsd:layers={self.file}")
        self.assertEqual(len(json.loads(bench.read_text())["methods"]), 2)

    def test_swift_goes_on_from_its_state(self):
        state = self.folder / "swift.json"
        ask = ["run", *TINY, "-p", PROMPTS[0], "-n", "60", "--temp", "0", "--ignore-eos", "--spec", "swift",
               "--swift-share", "1", "--swift-window", "8", "--swift-state", state]
        scores = []
        for _ in range(2):
            self.succeed(*ask)
            scores.append(json.loads(state.read_text())["search"]["n_scores"])
        self.assertGreater(scores[0], 0)
        self.assertGreater(scores[1], scores[0])
        self.fail_with("another model", "run", *OTHER, *ask[6:])
        self.fail_with("strategy", *ask, "--swift-search", "published")
        state.write_text("{}")
        self.fail_with("damaged", *ask)

    def test_bad_input(self):
        def fail(expected: str, *arguments) -> None:
            self.fail_with(expected, "layers", "search", *TINY, *BRIEF, *arguments)
            self.assertFalse(self.file.exists())

        fail("--prompts", "-o", self.file)
        fail("--output", "--prompts", self.prompts)
        fail("cannot read prompts", "--prompts", self.folder / "none", "-o", self.file)
        fail("there is no folder", "--prompts", self.prompts, "-o", self.folder / "none" / "x")
        fail("is a folder", "--prompts", self.prompts, "-o", self.folder)
        fail("--method", "--prompts", self.prompts, "-o", self.file, "--method", "guess")
        empty = self.folder / "empty.jsonl"
        empty.write_text("\n")
        fail("has no prompts", "--prompts", empty, "-o", self.file)

    def test_bad_files(self):
        self.search()
        ask = ["-p", "x", "-n", "2", "--spec", "selfsd"]
        self.fail_with("forerun layers search", "run", *TINY, *ask)
        self.fail_with("there is no file", "run", *TINY, *ask, "--selfsd-layers", self.folder / "none")
        self.fail_with("another model", "run", *OTHER, *ask, "--selfsd-layers", self.file)
        self.fail_with("another model", "layers", "show", self.file, "-m", model("tiny-qwen3"))
        whole = self.file.read_text()
        self.file.write_text(whole[: len(whole) // 2])
        self.fail_with("damaged", "layers", "show", self.file)
        self.fail_with("damaged", "run", *TINY, *ask, "--selfsd-layers", self.file)
        self.file.write_text(whole.replace('"forerun_layers":1', '"forerun_layers":9'))
        self.fail_with("version 9", "layers", "show", self.file)

    def test_an_interrupt_keeps_the_best_so_far(self):
        command = [PROGRAM, "layers", "search", *TINY, "--texts", "3", "--tokens", "12", "--candidates", "1000000",
                   "--method", "neighbour", "--patience", "1000000", "--prompts", self.prompts, "-o", self.file, "--json"]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not process.stderr.readline().startswith(b"searching"):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        found = json.loads(out)
        self.assertTrue(found["interrupted"])
        self.assertEqual(json.loads(self.file.read_text())["found"]["candidates"], found["candidates"])


if __name__ == "__main__":
    unittest.main()
