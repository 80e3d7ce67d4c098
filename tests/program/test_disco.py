"""Draft models, and classifiers that say when they stop, as people use them."""

import json
import resource
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model

TINY = ["-m", model("tiny-llama-f32"), *QUICK]
DRAFT = ["--draft-model", model("tiny-llama-f16")]
BRIEF = ["--tokens", "24", "--texts", "10"]
RULE = ["--threshold", "0.5", "--max-tokens", "6"]
PROMPTS = [f"{number} {thing}" for number in ("One", "Two", "Three", "Four") for thing in ("birds", "old ships", "moons")]
ASK = ["run", *TINY, "-p", "The sea", "-n", "40", "--temp", "0", "--ignore-eos"]


class Disco(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "disco.gguf"
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))

    def train(self, *arguments) -> dict:
        return self.succeed_json("disco", "train", *TINY, *BRIEF, "--prompts", self.prompts, "-o", self.file, *arguments)

    def evaluate(self, *arguments) -> dict:
        return self.succeed_json("disco", "eval", self.file, *TINY, *BRIEF, "--prompts", self.prompts, *arguments)

    def with_classifier(self, *arguments) -> list:
        return [*arguments, "--lookahead", "disco", "--lookahead-classifier", self.file]

    def test_trains_tells_and_drafts(self):
        trained = self.train(*DRAFT, *RULE, "--temp", "0,0.9")
        # Eight prompts, two temperatures, from the second of 24 tokens on; answers may end early.
        self.assertLessEqual(trained["examples"], 8 * 2 * 23)
        self.assertGreater(trained["examples"], 100)
        self.assertEqual((trained["threshold"], trained["max_tokens"]), (0.5, 6))
        self.assertNotIn("speedup", trained)
        tested = self.evaluate(*DRAFT)
        self.assertGreater(tested["taken"], 0.9, "the same weights in another type")
        self.assertGreater(tested["half"]["f1"], 0.9)
        self.assertEqual(sum(one["tokens"] for one in tested["bins"]), tested["tokens"])
        plain = self.succeed_json(*ASK, "--spec", "none")
        for method in ("draft", "auto"):
            drafted = self.succeed_json(*ASK, "--spec", method, *self.with_classifier(*DRAFT))
            self.assertEqual(drafted["tokens"], plain["tokens"])
        self.assertIn("taken (bar)", self.succeed("disco", "eval", self.file, *TINY, *BRIEF, *DRAFT, "--prompts", self.prompts).stdout.decode())

    def test_tunes_by_time(self):
        trained = self.train(*DRAFT, "--tokens", "8", "--validation", self.prompts)
        self.assertGreater(trained["speedup"], 0)
        self.assertIn(trained["max_tokens"], (4, 8, 16))
        trained = self.train(*DRAFT, "--tokens", "8", "--validation", self.prompts, "--threshold", "0.35")
        self.assertAlmostEqual(trained["threshold"], 0.35)

    def test_the_model_as_its_own_drafter(self):
        layers = self.folder / "layers.json"
        self.succeed("layers", "search", *TINY, "--prompts", self.prompts, "--texts", "2", "--tokens", "8",
                     "--candidates", "4", "-o", layers)  # fmt: skip
        kept = json.loads(layers.read_text())
        kept["skipped"] = [3]
        layers.write_text(json.dumps(kept))
        itself = ["--layers", layers]
        self.train(*itself, *RULE)
        self.evaluate(*itself)
        plain = self.succeed_json(*ASK, "--spec", "none")
        drafted = self.succeed_json(*self.with_classifier(*ASK, "--spec", "selfsd", "--selfsd-layers", layers))
        self.assertEqual(drafted["tokens"], plain["tokens"])
        self.assertGreater(drafted["speculation"]["drafted"], 0)
        self.fail_with("another draft model", *self.with_classifier(*ASK, "--spec", "draft", *DRAFT))
        kept["skipped"] = []
        layers.write_text(json.dumps(kept))
        self.fail_with("leaves out nothing", "disco", "train", *TINY, "--prompts", self.prompts, "-o", self.file, *itself)

    def test_the_oracle_is_for_benchmarks(self):
        bench = self.folder / "bench.json"
        oracle = ["draft:lookahead=oracle", "draft:lookahead=fixed:lookahead-tokens=9", "draft:lookahead=fixed:lookahead-tokens=30"]
        self.succeed("bench", "spec", *TINY, "--prompts", self.prompts, "--limit", "4", "-n", "40", *DRAFT,
                     "--methods", ",".join(oracle), "--json", bench, "--steps")  # fmt: skip
        methods = json.loads(bench.read_text())["methods"]
        for name in oracle:
            self.assertEqual(methods[name]["identical"], 4)
        # It never drafts behind a token that is not taken.
        for run in methods[oracle[0]]["runs"]:
            for drafted, accepted in zip(run["drafted_by_step"], run["accepted_by_step"]):
                self.assertLessEqual(drafted, accepted + 1)
        self.assertEqual(max(n for run in methods[oracle[2]]["runs"] for n in run["drafted_by_step"]), 30)
        self.fail_with("bench spec", *ASK, "--spec", "draft", *DRAFT, "--lookahead", "oracle")
        self.fail_with("accept drafts by match", "bench", "spec", *TINY, "--prompts", self.prompts, *DRAFT,
                       "--methods", oracle[0], "--accept", "leviathan")  # fmt: skip

    def test_methods_of_a_benchmark_have_draft_models_of_their_own(self):
        bench = self.folder / "bench.json"
        method = f"auto:draft-model={DRAFT[1]}:layers=none"
        self.succeed("bench", "spec", *TINY, "--prompts", self.prompts, "--limit", "4", "-n", "40",
                     "--methods", f"auto,{method}", "--json", bench)  # fmt: skip
        self.assertEqual(json.loads(bench.read_text())["methods"][method]["identical"], 4)
        self.fail_with("no-such-model", "bench", "spec", *TINY, "--prompts", self.prompts,
                       "--methods", "auto:draft-model=no-such-model")  # fmt: skip

    def test_bad_classifiers(self):
        drafting = [*ASK, "--spec", "draft", *DRAFT]
        self.fail_with("--lookahead-classifier", *drafting, "--lookahead", "disco")
        self.fail_with("no such file", *self.with_classifier(*drafting))
        result = self.succeed(*drafting, "--lookahead-classifier", self.file)
        self.assertIn(b"forerun: warning: --lookahead-classifier is for --lookahead disco", result.stderr)
        self.train(*DRAFT, *RULE)
        self.fail_with("another draft model", *self.with_classifier(*ASK, "--spec", "draft", "--draft-model", model("tiny-llama-q8_0")))
        self.fail_with("another model", *self.with_classifier("run", "-m", model("tiny-llama-bf16"), *QUICK, "-p", "x", "--spec", "draft", *DRAFT))
        whole = self.file.read_bytes()
        for cut in (0, 3, 40, len(whole) // 2, len(whole) - 40):
            self.file.write_bytes(whole[:cut])
            self.fail_with("make the classifier again" if cut > 0 else "", *self.with_classifier(*drafting))
        self.file.write_bytes(whole.replace(b"hidden.bias", b"hidden.boat"))
        self.fail_with("damaged", *self.with_classifier(*drafting))
        self.file.write_bytes(model("tiny-llama").read_bytes())
        self.fail_with("is no classifier", *self.with_classifier(*drafting))

    def test_bad_training(self):
        def fail(expected: str, *arguments) -> None:
            self.fail_with(expected, "disco", "train", *TINY, *BRIEF, "-o", self.file, *arguments)
            self.assertFalse(self.file.exists())

        fail("--prompts", *DRAFT)
        fail("say what drafts", "--prompts", self.prompts)
        fail("not both", "--prompts", self.prompts, *DRAFT, "--layers", self.prompts)
        fail("leave none to validate", "--prompts", self.prompts, *DRAFT, "--texts", "4")
        fail("too few to learn", "--prompts", self.prompts, *DRAFT, "--texts", "5", "--tokens", "3", *RULE)
        fail("cannot read prompts", "--prompts", self.folder / "none", *DRAFT)
        fail("no-such-model", "--prompts", self.prompts, "--draft-model", "no-such-model")
        fail("not a number", "--prompts", self.prompts, *DRAFT, "--threshold", "nan")
        fail("use shorter prompts", "--prompts", self.prompts, *DRAFT, "--tokens", "4096")

    def test_outputs_are_checked_before_the_work(self):
        def fail(expected: str, output, *arguments) -> None:
            self.fail_with(expected, "disco", "train", *TINY, *BRIEF, "-o", output, "--prompts", self.prompts, *arguments)

        draft = self.folder / "draft.gguf"
        draft.write_bytes(DRAFT[1].read_bytes())
        before = self.prompts.read_bytes()
        fail("is also read", self.prompts, *DRAFT)
        fail("is also read", draft, "--draft-model", draft)
        fail("cannot be replaced", "/dev/null", *DRAFT)
        fail("is a folder", self.folder, *DRAFT)
        fail("no folder", self.folder / "none" / "file", *DRAFT)
        fail("has no name", "", *DRAFT)
        bench = ["bench", "spec", *TINY, "--prompts", self.prompts, "--limit", "1", "-n", "4"]
        self.fail_with("is also read", *bench, "--json", self.prompts)
        self.fail_with("the same file", *bench, "--json", self.file, "--report", self.file)
        self.fail_with("there twice", *bench, "--methods", "pld,pld")
        self.assertEqual(self.prompts.read_bytes(), before)
        self.assertEqual(draft.read_bytes(), DRAFT[1].read_bytes())

    def test_an_interrupt_writes_nothing(self):
        many = ["--prompts", self.prompts] * 8
        command = [PROGRAM, "disco", "train", *TINY, *DRAFT, "--tokens", "900", *many, "-o", self.file]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not process.stderr.readline().startswith(b"answering"):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"interrupted: nothing was written", error)
        self.assertFalse(self.file.exists())


class DraftModels(ProgramTest):
    def test_what_cannot_draft(self):
        drafting = [*ASK, "--spec", "draft"]
        self.fail_with("--draft-model", *drafting)
        self.fail_with("no-such-model", *drafting, "--draft-model", "no-such-model")
        self.fail_with("is the model itself", *drafting, "--draft-model", model("tiny-llama-f32"))
        self.fail_with("cannot draft for this model", *drafting, "--draft-model", model("tiny-gemma3"))
        self.fail_with("is not a GGUF file", *drafting, "--draft-model", __file__)

    def test_a_larger_one_is_a_warning(self):
        small = ["run", "-m", model("tiny-llama-q8_0"), *QUICK, "-p", "x", "-n", "4", "--spec", "draft"]
        result = self.succeed(*small, "--draft-model", model("tiny-llama-f32"))
        self.assertIn(b"forerun: warning: ", result.stderr)
        self.assertIn(b"larger than the model it drafts for", result.stderr)

    def test_flags_of_other_methods_are_a_warning(self):
        for flag, *others in (["--draft-model", "none"], ["--lookahead", "fixed"], ["--swift-share", "0.1"]):
            result = self.succeed(*ASK, "--spec", "pld", flag, *others)
            self.assertIn(f"forerun: warning: {flag} is not used by --spec pld".encode(), result.stderr)

    def test_no_room_for_it(self):
        # Whatever memory there is: an answer, or one line. With some, it is the draft model's.
        command = [*map(str, [PROGRAM, *ASK, "--spec", "draft", *DRAFT, "-c", 400000])]
        errors = []
        for megabytes in range(200, 3000, 100):
            limit = megabytes * 2**20
            result = subprocess.run(
                command, capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            )
            if result.returncode == 0:
                break
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr, rb"\A[^\n]+\n\Z")
            errors.append(result.stderr.decode())
        self.assertTrue(any("no room for the draft model" in error for error in errors), errors)


if __name__ == "__main__":
    unittest.main()
