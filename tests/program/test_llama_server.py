"""`forerun bench spec` beside a llama-server, here one that only pretends to be one."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model

TINY = model("tiny-llama")
FAKE = Path(__file__).parent / "fake_llama_server.py"
PROMPTS = ["Tell me a story.", "What is a river?", "Count to ten.", "Name a colour."]


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class LlamaServer(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.server = self.folder / "llama-server"
        self.server.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B {shlex.quote(str(FAKE))} "$@"\n')
        self.server.chmod(0o755)
        self.prompts = self.folder / "prompts.jsonl"
        self.prompts.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS))
        self.json = self.folder / "result.json"
        os.environ["FAKE_FOLDER"] = str(self.folder)
        self.addCleanup(os.environ.pop, "FAKE_FOLDER")

    def command(self, *arguments) -> list:
        return [
            "bench", "spec", "-m", TINY, *QUICK, "--methods", "none", "--prompts", self.prompts, "-n", "8",
            "-c", "256", "--llama-server", self.server, *arguments,
        ]  # fmt: skip

    def measure(self, *arguments) -> dict:
        self.succeed(*self.command("--json", self.json, *arguments))
        return json.loads(self.json.read_text())

    def fail_by(self, fault: str, expected: str, *arguments, mode: str = "plain") -> None:
        environment = {"FAKE_FAULT": fault, "FAKE_FAULT_MODE": mode}
        self.fail_with(expected, *self.command(*arguments), environment=environment)
        self.assert_all_gone()

    def assert_all_gone(self) -> None:
        for file in self.folder.glob("*.pid"):
            self.assertTrue(is_gone(int(file.read_text())), file)

    def requests(self, mode: str) -> list[dict]:
        return [json.loads(line) for line in (self.folder / f"{mode}.requests").read_text().splitlines()]

    def test_all_modes_take_part(self):
        result = self.measure()
        self.assertEqual(list(result["methods"]), ["none", "llama:plain", "llama:ngram-simple", "llama:ngram-mod"])
        for name, method in result["methods"].items():
            self.assertEqual((method["prompts"], method["identical"]), (4, 4), name)
            self.assertEqual(method["speed_reference"], "none")
            self.assertEqual(method["text_reference"], "none" if name == "none" else "llama:plain")
        # The times are those that the server measured.
        for run in result["methods"]["llama:ngram-mod"]["runs"]:
            self.assertEqual([run[name] for name in ("prompt_ms", "decode_ms", "drafted", "accepted", "steps")], [2.5, 32, 6, 2, 5])
        self.assertEqual(result["llama_server"]["version"], "7 (fake)")
        self.assertEqual(result["llama_server"]["modes"]["plain"], [])
        self.assertIn(result["against_llama_server"]["mode"], result["methods"])
        self.assert_all_gone()

    def test_it_is_asked_the_same(self):
        self.measure("--llama-modes", "ngram-mod", "--seed", "5", "--ignore-eos")
        arguments = json.loads((self.folder / "ngram-mod.arguments").read_text())
        for pair in (["--model", str(TINY)], ["--threads", "2"], ["--ctx-size", "256"], ["--parallel", "1"], ["--n-gpu-layers", "0"]):
            self.assertEqual(arguments[arguments.index(pair[0]) :][:2], pair)
        self.assertNotIn("--spec-type", json.loads((self.folder / "plain.arguments").read_text()))
        requests = self.requests("ngram-mod")
        self.assertEqual(requests, self.requests("plain"))  # which always takes part
        for request, prompt in zip(requests, PROMPTS, strict=True):
            ours = self.succeed_json("run", "-m", TINY, *QUICK, "-p", prompt, "-n", "1")["prompt_tokens"]
            self.assertEqual(request["prompt"], ours)
            expected = {"n_predict": 8, "temperature": 0, "seed": 5, "cache_prompt": False, "return_tokens": True, "ignore_eos": True}
            self.assertEqual({name: request[name] for name in expected}, expected)

    def test_batches_are_asked_at_once(self):
        # The server answers none before all have been asked.
        result = self.measure("--batch", "4", "--llama-modes", "plain")
        arguments = json.loads((self.folder / "plain.arguments").read_text())
        self.assertEqual(arguments[arguments.index("--ctx-size") + 1], str(4 * 256))
        runs = result["methods"]["llama:plain"]["runs"]
        self.assertGreaterEqual(runs[0]["prompt_ms"], 2.5 / 4)
        self.assertEqual(len({(run["prompt_ms"], run["decode_ms"]) for run in runs}), 1)  # equal shares

    def test_its_texts_are_compared_with_its_own(self):
        os.environ.update(FAKE_FAULT="other text", FAKE_FAULT_MODE="ngram-mod")
        self.addCleanup(os.environ.pop, "FAKE_FAULT")
        self.addCleanup(os.environ.pop, "FAKE_FAULT_MODE")
        methods = self.measure()["methods"]
        self.assertEqual([methods[name]["identical"] for name in methods], [4, 4, 4, 0])

    def test_table_and_page(self):
        page = self.folder / "page.html"
        table = self.succeed(*self.command("--report", page, "--limit", "2")).stdout.decode()
        self.assertRegex(table, r"(?m)^llama:ngram-mod +\d")
        self.assertRegex(table, r"(?m)^none is \d+\.\d\d times as fast as llama\.cpp's best mode \(llama:\S+; ")
        html = page.read_text()
        self.assertIn("llama:ngram-mod</th>", html)
        for part in (f"--prompts {self.prompts} ", "--limit 2 ", f"--llama-server {self.server} ", "--llama-modes plain,ngram-simple,ngram-mod "):
            self.assertIn(part, html)

    def test_origin_of_the_prompts(self):
        first = self.measure("--llama-modes", "plain", "--limit", "2")
        self.assertEqual((first["prompts_file"], first["limit"]), (str(self.prompts), 2))
        self.prompts.write_text(self.prompts.read_text().replace("river", "lake"))
        second = self.measure("--llama-modes", "plain")
        self.assertRegex(first["prompts_hash"], r"\A[0-9a-f]{16}\Z")
        self.assertNotEqual(first["prompts_hash"], second["prompts_hash"])
        self.assertEqual(second["limit"], 0)

    def test_modes(self):
        self.fail_by("", "has no mode 'ngram-magic'; it has plain, ngram-simple, ngram-mod", "--llama-modes", "plain,ngram-magic")
        self.fail_by("", "has no mode 'draft-simple'", "--llama-modes", "draft-simple")

    def test_no_such_program(self):
        self.server = self.folder / "missing"
        self.fail_by("", "No such file")
        self.server = self.prompts
        self.fail_by("", "Permission denied")

    def test_faults(self):
        for fault, expected in (
            ("dies at once", "ended with code 1 before it was ready; its last line: cannot load anything"),
            ("dies", "did not answer a prompt; its last line: the last words"),
            ("status", "status 500: out of luck"),
            ("text", "no JSON object"),
            ("fields", "no usable field 'predicted_ms'"),
        ):
            with self.subTest(fault=fault):
                self.fail_by(fault, expected)
        self.fail_by("never ready", "was not ready after 1 s", "--llama-wait", "1")
        # Those that were started before it end too.
        self.fail_by("dies at once", "cannot load anything", mode="ngram-mod")
        self.fail_by("status", "out of luck", "--batch", "2", mode="ngram-simple")

    def test_options_it_does_not_have(self):
        self.fail_by("", "llama-server has no --stop-token", "--stop-token", "5")
        self.assertEqual(list(self.folder.glob("*.pid")), [])  # none was started for nothing
        self.fail_with("--llama-modes requires --llama-server", *self.command()[:-2], "--llama-modes", "plain")

    def test_it_ends_when_we_are_killed(self):
        environment = {**os.environ, "FAKE_FAULT": "hangs"}
        process = subprocess.Popen([PROGRAM, *map(str, self.command())], env=environment, stdout=subprocess.DEVNULL)
        while not (self.folder / "hangs").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        servers = [int(file.read_text()) for file in self.folder.glob("*.pid")]
        self.assertEqual(len(servers), 3)
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while not all(map(is_gone, servers)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertTrue(all(map(is_gone, servers)))


if __name__ == "__main__":
    unittest.main()
