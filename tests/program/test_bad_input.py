"""Whatever it is given, the program answers or says in one line what is wrong."""

import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model, run

TINY = model("tiny-llama")


class BadFiles(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, data: bytes) -> Path:
        path = self.folder / "model.gguf"
        path.write_bytes(data)
        return path

    def fail_to_load(self, expected: str, path: Path) -> None:
        run_it = ["run", *QUICK, "-p", "x", "-n", "1", "-m"]
        for command in (run_it, ["info"], ["tokenize", "-p", "x", "-m"], ["bench", "engine", "-m"]):
            self.fail_with(expected, *command, path)

    def test_no_such_file(self):
        self.fail_to_load("no such file", self.folder / "missing.gguf")

    def test_a_directory(self):
        self.fail_to_load("is a directory", self.folder)

    def test_not_a_gguf(self):
        self.fail_to_load("is not a GGUF file", self.write(b"hello world" * 100))
        self.fail_to_load("is not a GGUF file", self.write(b""))

    def test_unreadable(self):
        self.fail_with("/proc/self/mem", "info", "/proc/self/mem")

    def test_truncated(self):
        whole = TINY.read_bytes()
        cuts = sorted({*range(4, 64, 7), *random.Random(1).sample(range(64, len(whole)), 40), len(whole) - 1})
        for cut in cuts:
            with self.subTest(cut=cut):
                self.fail_with("truncated", "run", *QUICK, "-p", "x", "-n", "1", "-m", self.write(whole[:cut]))

    def test_unsupported_architecture(self):
        self.fail_with(
            "architecture 'nobod' is not supported",
            "run", "-p", "x", "-m", self.write(TINY.read_bytes().replace(b"llama", b"nobod")),
        )
        # One of libllama's, which finds that it is not.
        self.fail_with(
            "libllama cannot load",
            "run", "-p", "x", "-m", self.write(TINY.read_bytes().replace(b"llama", b"mamba")),
        )

    def test_missing_tensor(self):
        changed = TINY.read_bytes().replace(b"blk.1.attn_q.weight", b"blk.1.attn_X.weight")
        self.fail_with("has no tensor blk.1.attn_q.weight", "run", "-p", "x", "-m", self.write(changed))

    def test_mutated_headers(self):
        # Every kind of damage is tried in process, by the thousand, elsewhere; this shows
        # that the program survives it too.
        whole = TINY.read_bytes()
        header = whole.rindex(b"output_norm.weight") + 64
        generator = random.Random(2)
        for trial in range(100):
            damaged = bytearray(whole)
            for _ in range(generator.randint(1, 4)):
                damaged[generator.randrange(header)] = generator.randrange(256)
            result = run("run", *QUICK, "-p", "x", "-n", "1", "-m", self.write(bytes(damaged)))
            self.assertIn(result.returncode, (0, 1), f"trial {trial}: {result.stderr!r}")

    def test_damaged_prompt_cache(self):
        cache = self.folder / "cache.bin"
        arguments = ["run", *QUICK, "-m", TINY, "-p", "hello", "-n", "4", "--prompt-cache", cache]
        self.succeed(*arguments)
        whole = cache.read_bytes()
        for position in (0, 5, 12, 30, 45, len(whole) // 2, len(whole) - 1):
            damaged = bytearray(whole)
            damaged[position] ^= 0x55
            cache.write_bytes(bytes(damaged))
            self.fail_with(str(cache), *arguments)
        cache.write_bytes(whole[:-20])
        self.fail_with("truncated", *arguments)
        cache.write_bytes(whole)
        self.fail_with("another model", *arguments[:-6], "-m", model("tiny-qwen2"), *arguments[-6:])


    def test_prompt_cache_that_cannot_be_written(self):
        arguments = ["run", *QUICK, "-m", TINY, "-p", "hello", "-n", "4", "--temp", "0"]
        expected = self.succeed(*arguments).stdout
        for path in (self.folder / "none" / "cache", self.folder / ("x" * 300), self.write(b"") / "cache"):
            with self.subTest(path=path):
                result = self.succeed(*arguments, "--prompt-cache", path)
                self.assertEqual(result.stdout, expected)
                warning, *rest = result.stderr.decode().splitlines()
                self.assertRegex(warning, r"\Aforerun: warning: cannot write ")
                self.assertNotIn("filesystem error", warning)
                self.assertIn("tokens", rest[-1], "the statistics")
                self.assertEqual(self.succeed_json(*arguments, "--prompt-cache", path)["stop_reason"], "limit")

    def test_files_of_a_newer_version(self):
        newer = "a newer version of forerun"
        data = TINY.read_bytes()
        self.fail_to_load(newer, self.write(data[:4] + b"\x63\0\0\0" + data[8:]))
        cache = self.folder / "cache.bin"
        arguments = ["run", *QUICK, "-m", TINY, "-p", "hello", "-n", "1"]
        self.succeed(*arguments, "--prompt-cache", cache)
        whole = cache.read_bytes()
        cache.write_bytes(whole[:4] + bytes([99]) + whole[5:])
        self.fail_with(newer, *arguments, "--prompt-cache", cache)
        for field, flags in (
            ("forerun_layers", ["--spec", "selfsd", "--selfsd-layers"]),
            ("forerun_domains", ["--spec", "knnssd", "--knnssd-domains"]),
            ("forerun_swift", ["--spec", "swift", "--swift-state"]),
        ):
            path = self.folder / field
            path.write_text(f'{{"{field}": 99}}')
            self.fail_with(newer, *arguments, *flags, path)

    def test_paths_that_the_system_refuses(self):
        for path in (self.folder / ("x" * 300), self.write(b"") / "below"):
            for command in (
                ["run", *QUICK, "-m", TINY, "-f", path],
                ["run", *QUICK, "-m", path, "-p", "x"],
                ["datastore", "info", path],
                ["datastore", "build", path, TINY.parent / "none", "-m", TINY],
                ["layers", "search", "-m", TINY, "-p", "x", "-o", path],
                ["bench", "retrieval", "--folder", path / "x"],
            ):
                self.assertNotIn("filesystem error", self.fail_with("", *command))
        self.assertNotIn("filesystem error", self.fail_with("", "bench", "retrieval", environment={"TMPDIR": str(path)}))


class BadRequests(ProgramTest):
    def fail_to_run(self, expected: str, *arguments, stdin: bytes = b"") -> None:
        self.fail_with(expected, "run", *QUICK, "-m", TINY, *arguments, stdin=stdin)

    def test_names(self):
        elsewhere = {"XDG_CACHE_HOME": "/nonexistent"}
        for name, hint in (
            ("smollm2", "scripts/models.py fetch smollm2"),
            ("gemma3-270m", "scripts/models.py fetch gemma3-270m"),
            ("smollm2-deep", "make models"),
            ("nonsense", "-m takes"),
            ("", "empty"),
        ):
            self.fail_with(hint, "run", "-p", "x", "-m", name, environment=elsewhere)

    def test_prompts(self):
        self.fail_to_run("the prompt is empty", "-p", "")
        self.fail_to_run("the prompt is empty", stdin=b"")
        self.fail_to_run("UTF-8", "--raw", stdin=b"valid \xff\xfe invalid")
        self.fail_to_run("UTF-8", stdin=b"cut \xe2\x82")
        self.fail_to_run("a shorter prompt", "-p", "word " * 2000, "-c", "256")
        self.fail_to_run("cannot read", "-f", "/nonexistent/prompt.txt")
        self.fail_to_run("cannot read", "-f", "/tmp")

    def test_option_values(self):
        for arguments in (
            ["--temp", "-1"], ["--temp", "nan"], ["--temp", "warm"], ["--top-k", "-3"], ["--top-p", "0"],
            ["--top-p", "1.5"], ["--min-p", "2"], ["--repeat-penalty", "0"], ["--repeat-penalty", "inf"],
            ["--repeat-last-n", "-2"], ["-n", "-5"], ["-n", "many"], ["-s", "-1"], ["-s", "x"], ["-t", "0"],
            ["-t", "100000"], ["-c", "0"], ["-c", "-1"], ["-c", "99999999999"], ["--kv-type", "q3"],
            ["--device", "abacus"], ["--device", "cuda:99"], ["--logit-bias", "5"], ["--logit-bias", "x=1"],
            ["--logit-bias", "99999999=1"], ["--stop", ""], ["--stop-token", "-1"], ["--stop-token", "99999999"],
            ["--logprobs", "-2"], ["--no-such-flag"], ["--presence-penalty", "nan"],
        ):  # fmt: skip
            with self.subTest(arguments=arguments):
                self.fail_to_run("", "-p", "x", "-n", "1", *arguments)

    def test_options_are_checked_before_anything_is_loaded(self):
        missing = ["-m", "/nonexistent/model.gguf"]
        cases = [
            (["--temp", "-3"], "temperature"), (["--top-k", "-1"], "top_k"), (["--top-p", "2"], "top_p"),
            (["--min-p", "2"], "min_p"), (["--repeat-penalty", "0"], "repeat_penalty"),
            (["--repeat-last-n", "-2"], "repeat_last_n"), (["--presence-penalty", "nan"], "presence_penalty"),
            (["--frequency-penalty", "inf"], "frequency_penalty"), (["--stop", ""], "stop string"),
            (["--stop-token", "-1"], "stop token"), (["--logit-bias", "x=1"], "--logit-bias"),
            (["--logit-bias=-1=1"], "logit_bias"), (["--logit-bias", "1=inf"], "logit_bias"), (["-n", "-5"], "-n"),
            (["-s", "-1"], "--seed"), (["--logprobs", "-2"], "--logprobs"), (["-c", "0"], "--ctx-size"),
            (["-c", "99999999"], "--ctx-size"), (["-t", "0"], "--threads"), (["--kv-type", "q3"], "--kv-type"),
            (["--spec", "eagle"], "--spec"), (["--tree", "tall"], "--tree"), (["--tree", "0"], "--tree"),
            (["--accept", "luck"], "--accept"), (["--lookahead", "guess"], "--lookahead"),
            (["--pld-ngram", "999"], "--pld-ngram"), (["--lookahead", "disco"], "--lookahead-classifier"),
        ]  # fmt: skip
        answering = [
            (["--spec", "draft"], "--draft-model"), (["--spec", "selfsd"], "--selfsd-layers"),
            (["--spec", "knnssd"], "--knnssd-domains"), (["--lookahead", "oracle"], "bench spec"),
        ]  # fmt: skip
        methods = [
            (["--methods", "eagle"], "eagle"), (["--methods", "draft"], "--draft-model"),
            (["--methods", "pld:ngram=999"], "pld-ngram"), (["--methods", "pld:size=3"], "size"),
            (["--methods", "pld,pld"], "twice"), (["--batch", "0"], "--batch"), (["--batch", "257"], "--batch"),
        ]  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
            prompts.write('{"prompt": "x"}\n')
            prompts.flush()
            bench = ["bench", "spec", "--prompts", prompts.name]
            for command, wrong in ((["run", "-p", "x"], cases + answering), (["chat"], cases + answering), (bench, cases + methods)):
                self.fail_with("no such file", *command, *missing)
                for arguments, expected in wrong:
                    with self.subTest(command=command, arguments=arguments):
                        self.assertNotIn("no such file", self.fail_with(expected, *command, *missing, *arguments))

    def test_context_larger_than_memory(self):
        self.fail_to_run("a context of", "-p", "x", "-c", str(1 << 24), "--kv-type", "f32")

    def test_everything_forbidden(self):
        bias = [f"--logit-bias={token}=-inf" for token in range(600)]
        message = run("run", *QUICK, "-m", TINY, "-p", "x", *bias).stderr.decode()
        self.assertRegex(message, r"\Aforerun: [^\n]+\n\Z")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([PROGRAM, "info", TINY], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual((result.returncode, result.stderr), (1, b"forerun: cannot write the output\n"))

    def test_benchmarks(self):
        self.fail_with("--kv-type", "bench", "engine", "-m", TINY, "--kv-type", "q3")
        self.fail_with("", "bench", "engine", "-m", TINY, *QUICK, "--starts", "1", "-c", str(1 << 24), "--kv-type", "f32")

    def test_commands(self):
        self.fail_with("--help")
        self.fail_with("--help", "dance")
        self.fail_with("no chat template", "chat", "-m", model("gemma3-270m"), stdin=b"hello\n")


if __name__ == "__main__":
    unittest.main()
