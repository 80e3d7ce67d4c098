"""The commands do what their help says."""

import json
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model

TINY = model("tiny-llama")
SMOLLM2 = model("smollm2")
GREEDY = ["--temp", "0"]


class Run(ProgramTest):
    def answer(self, *arguments, stdin: bytes = b"") -> dict:
        return self.succeed_json("run", *QUICK, *arguments, stdin=stdin)

    def test_a_real_answer(self):
        # Each of these tokens is likelier than any other by a factor of thirty: no rounding changes them.
        result = self.succeed("run", *QUICK, "-m", SMOLLM2, "--raw", "-p", "1, 2, 3, 4, 5, 6, 7,", *GREEDY, "-n", "5")
        self.assertEqual(result.stdout.decode().strip(), "8, 9")
        self.assertRegex(result.stderr.decode(), r"prompt: \d+ tokens?, .* answer: \d+ tokens?, .*\n\Z")

    def test_every_method_says_the_same(self):
        prompt = ["-m", model("tiny-llama"), "--raw", "-p", "one two three one two three one", "-n", 40, "--seed", 3]
        plain = self.succeed_json("run", *QUICK, *prompt, "--spec", "none")
        self.assertEqual(plain["speculation"]["drafted"], 0)
        for method in ["auto", "pld", "rest", "pia", "jacobi", "sssd", "suffix"]:
            drafted = self.succeed_json("run", *QUICK, *prompt, "--spec", method, "--tree", 8)
            self.assertEqual(drafted["tokens"], plain["tokens"], method)
        self.assertIn("--pld-ngram", self.succeed("run", "--help-all").stdout.decode())

    def test_every_kind_of_vocabulary_answers(self):
        for kind, name in [("wordpiece", "WordPiece"), ("unigram", "Unigram"), ("rwkv", "RWKV"), ("plamo2", "PLaMo-2")]:
            file = model(f"tiny-llama-{kind}")
            self.assertEqual(self.succeed_json("info", file)["tokenizer"], name)
            prompt = ["-m", file, "--raw", "-p", "one two the one two, Zürich 🙂 the one", "-n", 24, "--seed", 3, "--ignore-eos"]
            plain = self.answer(*prompt, "--spec", "none")
            self.assertEqual(len(plain["tokens"]), 24, kind)
            self.assertTrue(plain["text"], kind)
            self.assertEqual(self.answer(*prompt, "--spec", "pld")["tokens"], plain["tokens"], kind)

    def test_json(self):
        answer = self.answer("-m", TINY, "-p", "hello", "-n", "5", *GREEDY, "--ignore-eos")
        self.assertEqual(list(answer), ["text", "tokens", "prompt_tokens", "stop_reason", "seed", "timings", "speculation"])
        self.assertEqual(len(answer["tokens"]), 5)
        self.assertEqual(answer["stop_reason"], "limit")
        timings = answer["timings"]
        self.assertEqual(timings["prompt_n"], len(answer["prompt_tokens"]))
        self.assertEqual(timings["predicted_n"], 5)
        self.assertEqual(timings["cache_n"], 0)
        self.assertGreater(timings["predicted_per_second"], 0)

    def test_prompt_sources_agree(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"Once upon a time")
            file.flush()
            given = self.answer("-m", TINY, "-p", "Once upon a time", "-n", "8", *GREEDY)["tokens"]
            self.assertEqual(self.answer("-m", TINY, "-f", file.name, "-n", "8", *GREEDY)["tokens"], given)
        piped = self.answer("-m", TINY, "-n", "8", *GREEDY, stdin=b"Once upon a time")["tokens"]
        self.assertEqual(piped, given)

    def test_raw_and_template_differ(self):
        raw = self.answer("-m", SMOLLM2, "--raw", "-p", "Hi", "-n", "1")["prompt_tokens"]
        chat = self.answer("-m", SMOLLM2, "-p", "Hi", "-n", "1")["prompt_tokens"]
        system = self.answer("-m", SMOLLM2, "--system", "Rhyme.", "-p", "Hi", "-n", "1")["prompt_tokens"]
        self.assertLess(len(raw), len(chat))
        self.assertNotEqual(chat, system)

    def test_seed_decides_the_text(self):
        arguments = ["-m", TINY, "-p", "hello", "-n", "24", "--temp", "1", "--ignore-eos"]
        one = self.answer(*arguments, "-s", "1")
        again = self.answer(*arguments, "-s", "1", "-t", "1")
        other = self.answer(*arguments, "-s", "2")
        self.assertEqual(one["tokens"], again["tokens"])
        self.assertNotEqual(one["tokens"], other["tokens"])
        random = self.answer(*arguments)
        self.assertEqual(self.answer(*arguments, "-s", str(random["seed"]))["tokens"], random["tokens"])

    def test_stops(self):
        ask = ["-m", SMOLLM2, "-p", "Count from 1 to 9.", "-n", "40", *GREEDY, "--ignore-eos"]
        whole = self.answer(*ask)
        stop = whole["text"][4:8]
        stopped = self.answer(*ask, "--stop", stop)
        self.assertEqual(stopped["text"], whole["text"][: whole["text"].index(stop)])
        self.assertEqual(stopped["stop_reason"], "word")
        token = whole["tokens"][3]
        by_token = self.answer(*ask, "--stop-token", token)
        self.assertEqual(by_token["tokens"], whole["tokens"][: whole["tokens"].index(token)])
        self.assertEqual(by_token["stop_reason"], "word")

    def test_end_of_text_and_limits(self):
        ask = ["-m", TINY, "-p", "hello", *GREEDY, "-n", "40"]
        facts = self.succeed_json("info", TINY, "--metadata")
        longer = self.answer(*ask, "--ignore-eos", "--logprobs", facts["n_vocab"])
        self.assertEqual((len(longer["tokens"]), longer["stop_reason"]), (40, "limit"))
        # How far the token that ends texts is behind the best one. A bias in the widest gap between two of
        # these numbers ends the text where the first of the smaller ones is, whatever the rounding.
        end = int(facts["metadata"]["tokenizer.ggml.eos_token_id"])
        behind = []
        for entry in longer["logprobs"]:
            logprobs = {token["id"]: token["logprob"] for token in entry["top_logprobs"]}
            behind.append(max(logprobs.values()) - logprobs[end])
        steps = sorted(behind)
        below, above = max(zip(steps, steps[1:]), key=lambda pair: pair[1] - pair[0])
        ended = self.answer(*ask, f"--logit-bias={end}={(below + above) / 2}")
        self.assertEqual(ended["stop_reason"], "eos")
        self.assertEqual(ended["tokens"], longer["tokens"][: next(i for i, x in enumerate(behind) if x <= below)])
        full = self.answer("-m", TINY, "-p", "hello", "-c", "256", "--ignore-eos")
        self.assertEqual(full["stop_reason"], "context")
        self.assertEqual(len(full["prompt_tokens"]) + len(full["tokens"]), 257)
        nothing = self.answer("-m", TINY, "-p", "hello", "-n", "0")
        self.assertEqual((nothing["text"], nothing["stop_reason"]), ("", "limit"))

    def test_log_probabilities(self):
        answer = self.answer("-m", TINY, "-p", "hello", "-n", "3", *GREEDY, "--ignore-eos", "--logprobs", "4")
        for token, entry in zip(answer["tokens"], answer["logprobs"], strict=True):
            self.assertEqual(entry["id"], token)
            self.assertEqual(len(entry["top_logprobs"]), 4)
            self.assertLessEqual(entry["logprob"], 0)

    def test_bias_and_penalties(self):
        plain = self.answer("-m", TINY, "-p", "hello", "-n", "1", *GREEDY, "--ignore-eos")["tokens"][0]
        other = self.answer("-m", TINY, "-p", "hello", "-n", "1", *GREEDY, "--ignore-eos", f"--logit-bias={plain}=-inf")
        self.assertNotEqual(other["tokens"][0], plain)

    def test_prompt_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["-m", TINY, "-p", "The same beginning", "-n", "6", *GREEDY, "--ignore-eos"]
            cache = ["--prompt-cache", Path(folder) / "cache.bin"]
            first = self.answer(*arguments, *cache)
            second = self.answer(*arguments, *cache)
            self.assertEqual(first["tokens"], second["tokens"])
            self.assertEqual(second["timings"]["cache_n"], len(first["prompt_tokens"]) - 1)
            self.assertEqual(second["timings"]["prompt_n"], 1)

    def test_cache_types(self):
        # What they compute is compared in process; here, that the flag reaches the cache.
        for kind in ("f16", "f32", "q8_0"):
            self.assertEqual(len(self.answer("-m", TINY, "-p", "x", "-n", "9", "--ignore-eos", "--kv-type", kind)["tokens"]), 9)

    def interrupted(self, *arguments) -> tuple[bytes, bytes]:
        """What a long answer leaves on both streams when Ctrl-C ends it."""
        endless = [PROGRAM, "run", *QUICK, "-m", SMOLLM2, "-p", "Tell me a story.", "--ignore-eos", "--spec", "none"]
        process = subprocess.Popen(list(map(str, [*endless, *arguments])), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        status = Path(f"/proc/{process.pid}/status")
        catches = 0
        while not catches & 1 << (signal.SIGINT - 1):  # from when on it answers
            self.assertIsNone(process.poll())
            catches = int(status.read_text().partition("SigCgt:")[2].split()[0], 16)
        first = b"" if "--json" in arguments else process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
        return first + output, errors

    def test_an_interrupted_answer_is_printed(self):
        text, statistics = self.interrupted()
        self.assertTrue(text.strip())
        self.assertRegex(statistics.decode(), r"answer: [\d,]+ tokens?\b.*interrupted")
        answer = json.loads(self.interrupted("--json")[0])
        self.assertEqual(answer["stop_reason"], "cancelled")

    def test_split_model_by_name(self):
        self.answer("-m", "tiny-llama-split", "-p", "x", "-n", "1")


class Others(ProgramTest):
    def test_info(self):
        text = self.succeed("info", SMOLLM2).stdout.decode()
        self.assertRegex(text, r"architecture +llama\n")
        facts = self.succeed_json("info", SMOLLM2, "--metadata")
        self.assertEqual((facts["n_layers"], facts["n_embd"], facts["n_vocab"]), (30, 576, 49152))
        self.assertEqual(facts["metadata"]["general.architecture"], "llama")

    def test_tokenize(self):
        text = "Hello, wörld! 🦊 <|im_end|>"
        tokens = self.succeed_json("tokenize", "-m", SMOLLM2, "-p", text)["tokens"]
        self.assertEqual("".join(token["piece"] for token in tokens[:4]), "Hello, wör")
        special = self.succeed_json("tokenize", "-m", SMOLLM2, "-p", text, "--parse-special")["tokens"]
        self.assertLess(len(special), len(tokens))
        self.assertEqual(special[-1]["piece"], "<|im_end|>")
        lines = self.succeed("tokenize", "-m", SMOLLM2, stdin=text.encode()).stdout.decode().splitlines()
        self.assertEqual(len(lines), len(tokens))

    def test_help(self):
        for command in ([], ["run"], ["chat"], ["info"], ["tokenize"], ["bench"], ["bench", "engine"]):
            self.assertIn("Usage:", self.succeed(*command, "--help").stdout.decode())

    def test_bench_retrieval(self):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            small = ["--tokens", "200000", "--segments", "2", "--queries", "50", "--steps", "100", "--folder", store]
            result = self.succeed_json("bench", "retrieval", *small)
            self.assertGreater(result["build_tokens_per_second"], 0)
            self.assertLess(result["bytes_per_token"], 8.1)
            for name in ("search_us", "step_us", "folding_step_us"):
                self.assertGreaterEqual(result[name]["p99"], result[name]["median"])
            self.assertFalse(store.exists(), "it is removed again")
            store.mkdir()
            self.fail_with("is there already", "bench", "retrieval", *small)
            self.assertTrue(store.exists(), "what was there stays")

    def test_bench(self):
        result = self.succeed_json("bench", "engine", "-m", TINY, *QUICK, "--rounds", "1", "--starts", "1")
        self.assertEqual([row["n"] for row in result["rows"]], [1, 2, 3, 4, 6, 8, 16, 32])
        for part in ("decode", "prefill", "load", "memory"):
            self.assertGreater(result[part]["ratio"], 0)
        self.assertIn("ratio", self.succeed("bench", "engine", "-m", TINY, *QUICK, "--rounds", "1", "--starts", "0").stdout.decode())


if __name__ == "__main__":
    unittest.main()
