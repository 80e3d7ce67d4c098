"""What a new user types first, and what they see."""

import json
import re
import struct
import tempfile
import unittest
from pathlib import Path

from program import QUICK, ProgramTest, model, run
from terminal import Terminal

SMOLLM2 = model("smollm2")
TINY = model("tiny-llama")
GREEDY = ["--temp", "0"]


class FirstWords(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_prompt_as_it_stands(self):
        flags = ["-m", TINY, *QUICK, *GREEDY, "-n", "5"]
        plain = self.succeed("run", "Why is the sky blue?", *flags)
        self.assertEqual(plain.stdout, self.succeed("run", "-p", "Why is the sky blue?", *flags).stdout)
        self.assertEqual(plain.stdout, self.succeed("run", *flags, "Why is the sky blue?").stdout)
        self.fail_with("quotes", "run", "Why", "is", *flags)
        self.fail_with("name it with -m", "run", TINY)
        self.assertEqual(self.succeed("tokenize", "a b", "-m", TINY).stdout, self.succeed("tokenize", "-p", "a b", "-m", TINY).stdout)

    def test_mistakes_name_what_is_near(self):
        for wrong, near in {"rnu": "run", "caht": "chat", "datastores": "datastore", "tokenise": "tokenize"}.items():
            message = self.fail_with(f"there is no command 'forerun {wrong}'", wrong)
            self.assertIn(f"did you mean forerun {near}?", message)
        message = self.fail_with("there is no command 'forerun nonsense'", "nonsense", "-p", "x")
        self.assertNotIn("did you mean", message)
        self.fail_with("did you mean forerun datastore build?", "datastore", "biuld", "x")
        self.fail_with("needs a command")
        self.fail_with("needs a command", "datastore")

    def test_an_unknown_flag_is_named_once_and_in_order(self):
        message = self.fail_with("no options --first, --second", "run", "--first", "--second", "-p", "x")
        self.assertEqual(message.count("--first"), 1)
        message = self.fail_with("no option --temprature; did you mean --temp?", "run", "--temprature", "1")
        self.assertEqual(message.count("--temprature"), 1)

    def test_help_begins_with_what_people_need(self):
        short = self.succeed("run", "--help").stdout.decode()
        long = self.succeed("run", "--help-all").stdout.decode()
        drafting = self.succeed("help", "drafting").stdout.decode()
        self.assertLess(len(short.splitlines()), 90)
        self.assertIn("--temp", short)
        self.assertIn("--spec", short)
        for knob in ("--pld-ngram", "--swift-search", "--lookahead"):
            self.assertNotIn(knob, short)
            self.assertIn(knob, long)
            self.assertIn(knob, drafting)
        self.assertNotIn("--temp", drafting)
        self.assertEqual(self.succeed("help", "run").stdout.decode(), short)
        self.fail_with("there is no help for", "help", "nonsense")

    def test_models(self):
        text = self.succeed("models").stdout.decode()
        self.assertRegex(text, r"(?m)^smollm2 +\d+\.\d MB")
        listed = self.succeed_json("models")
        self.assertIn(str(SMOLLM2), [entry["path"] for entry in listed["models"]])
        result = run("models", environment={"XDG_CACHE_HOME": str(self.folder)})
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout.decode(), r"(?m)^smollm2 +not here yet: scripts/models.py fetch smollm2")

    def test_options_without_effect_say_so(self):
        flags = ["-m", TINY, *QUICK, *GREEDY, "-n", "2", "-p", "x"]
        self.assertIn(b"--logprobs shows nothing without --json", self.succeed("run", *flags, "--logprobs", "2").stderr)
        self.assertNotIn(b"warning", self.succeed("run", *flags, "--logprobs", "2", "--json").stderr)
        self.assertIn(b"--spec rest drafts from a datastore alone", self.succeed("run", *flags, "--spec", "rest").stderr)

    def test_one_token_is_one_token(self):
        line = self.succeed("run", "-m", TINY, *QUICK, *GREEDY, "-n", "1", "--ignore-eos", "--raw", "-p", "a").stderr.decode()
        self.assertRegex(line, r"answer: 1 token \|")
        self.assertNotIn("1 tokens", line)

    def test_a_suggested_context_is_one_that_the_model_can_have(self):
        trained = self.succeed_json("info", TINY)["n_ctx_train"]
        words = lambda n: "a " * n
        message = self.fail_with("-c ", "run", "-m", TINY, *QUICK, "-c", "16", "--raw", "-p", words(40))
        self.assertLessEqual(int(re.search(r"-c (\d+)", message)[1]), trained)
        message = self.fail_with("a shorter prompt", "run", "-m", TINY, *QUICK, "--raw", "-p", words(2 * trained))
        self.assertNotIn("-c", message)

    def test_nothing_from_a_file_reaches_the_terminal_raw(self):
        key, value = b"general.architecture", b"ev\x1b[31mil"
        path = self.folder / "model.gguf"
        path.write_bytes(
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(value)) + value
        )
        for command in (["info", path], ["run", "-m", path, "-p", "x"]):
            message = self.fail_with("ev\\x1b[31mil", *command)
            self.assertNotIn("\x1b", message)
        self.fail_with("\\x1b", "run", "-m", "no\x1bsuch", "-p", "x")

    def test_tokens_show_their_bytes(self):
        shown = self.succeed("tokenize", "-m", SMOLLM2, "-p", "\N{FOX FACE}\n").stdout.decode()
        pieces = re.findall(r'"(.*)"', shown)
        self.assertEqual("".join(pieces), "\\xf0\\x9f\\xa6\\x8a\\n")
        tokens = self.succeed_json("tokenize", "-m", SMOLLM2, "-p", "\N{FOX FACE}\n")["tokens"]
        self.assertEqual(bytes(byte for token in tokens for byte in token["bytes"]), "\N{FOX FACE}\n".encode())

    def test_a_long_prompt_shows_how_far_it_is_and_ends_when_told(self):
        path = self.folder / "long.txt"
        path.write_text("The quick brown fox jumps over the lazy dog. " * 700)
        terminal = Terminal("run", "-m", SMOLLM2, *QUICK, *GREEDY, "-n", "3", "--spec", "none", "-f", path)
        self.addCleanup(terminal.kill)
        terminal.wait_for(r"reading the prompt +\d+ %", seconds=120)
        terminal.send("\x03")
        terminal.wait_for(r"prompt: [\d,]+ tokens", seconds=120)
        statistics = terminal.wait_for("interrupted", seconds=120)
        self.assertIn("answer: 0 tokens |", statistics)
        self.assertEqual(terminal.close(), 130)


if __name__ == "__main__":
    unittest.main()
