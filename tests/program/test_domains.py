"""Kinds of prompts, made and used as people do it."""

import json
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model, run

TINY = ["-m", model("tiny-llama"), *QUICK]
# A search that finds little, in no time.
BRIEF = ["--texts", "2", "--tokens", "8", "--candidates", "20", "--clusters", "3"]
SUMS = [f"{i} + {i + 3} = {2 * i + 3}, so {i + 1} + {i + 4} =" for i in range(6)]
TALES = [f"Once upon a time a {who} went into the dark forest and" for who in ("king", "girl", "dog", "tailor", "wolf", "bear")]


class Domains(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "domains.json"
        self.prompts = self.write("prompts.jsonl", [("sums", p) for p in SUMS] + [("tales", p) for p in TALES])

    def write(self, name: str, prompts: list[tuple[str, str]]) -> Path:
        path = self.folder / name
        lines = [json.dumps({"category": category, "turns": [text]}) for category, text in prompts]
        path.write_text("\n".join(lines) + "\n")
        return path

    def build(self, *arguments) -> str:
        result = self.succeed("domains", "build", *TINY, *BRIEF, "-o", self.file, *arguments)
        return result.stdout.decode()

    def test_build_show_route_run(self):
        said = self.build("--prompts", self.prompts)
        for part in ("by the mean of its states", "by the last of its states", "sums: ", "tales: "):
            self.assertIn(part, said)
        shown = self.succeed_json("domains", "show", self.file)
        self.assertEqual([domain["name"] for domain in shown["domains"]], ["sums", "tales"])
        self.assertEqual([domain["anchors"] for domain in shown["domains"]], [3, 3])
        self.assertEqual(shown["vector"], "mean")
        self.assertIn("tales", self.succeed("domains", "show", self.file).stdout.decode())
        for domain, prompt in (("sums", SUMS[2]), ("tales", TALES[4])):
            routed = self.succeed_json("domains", "route", self.file, *TINY, "-p", prompt)
            self.assertEqual(routed["domain"], domain)
            self.assertEqual(list(routed["cosines"])[0], domain)
        drafting = ["--spec", "knnssd", "--knnssd-domains", self.file, "--knnssd-fallback", "uniform"]
        for prompt in (SUMS[0], "Quite another matter!"):
            ask = ["run", *TINY, "-p", prompt, "-n", "20", "--temp", "0", "--ignore-eos"]
            plain = self.succeed_json(*ask, "--spec", "none")
            self.assertEqual(self.succeed_json(*ask, *drafting)["tokens"], plain["tokens"])

    def test_files_of_their_own_and_the_last_state(self):
        sums = self.write("sums.jsonl", [("", p) for p in SUMS])
        tales = self.write("tales.jsonl", [("", p) for p in TALES])
        self.build("--domain", f"numbers={sums}", "--domain", f"stories={tales}", "--vector", "last")
        shown = self.succeed_json("domains", "show", self.file)
        self.assertEqual([domain["name"] for domain in shown["domains"]], ["numbers", "stories"])
        self.assertEqual(shown["vector"], "last")

    def test_domains_are_found_where_nobody_said_which(self):
        said = self.build("--prompts", self.prompts, "--unlabelled", "2")
        self.assertIn("\n  prompts of ", said)
        shown = self.succeed_json("domains", "show", self.file)
        self.assertEqual([domain["name"] for domain in shown["domains"]], ["1", "2"])
        unlabelled = self.write("unlabelled.jsonl", [("", p) for p in SUMS + TALES])
        found = json.loads(self.build("--prompts", unlabelled, "--json"))["domains"]
        self.assertTrue(2 <= len(found) <= 6)
        self.assertEqual(sum(domain["prompts"] for domain in found), 12)
        self.assertTrue(all(domain["prompts"] >= 2 and domain["categories"] == {} for domain in found))

    def test_build_as_json(self):
        built = json.loads(self.build("--prompts", self.prompts, "--json"))
        self.assertEqual([domain["name"] for domain in built["domains"]], ["sums", "tales"])
        for domain in built["domains"]:
            self.assertEqual(domain["prompts"], 6)
            self.assertEqual(domain["categories"], {domain["name"]: 6})
            self.assertEqual(list(domain["at_home"]), ["mean", "last"])

    def test_a_mixed_stream(self):
        orders = []
        for mix in ("0", "0", "1"):
            out = self.folder / "bench.json"
            self.succeed(
                "bench", "spec", *TINY, "--prompts", self.prompts, "--methods", "none", "-n", "2",
                "--mix", mix, "--json", out,
            )
            result = json.loads(out.read_text())
            self.assertEqual(result["mix"], float(mix))
            orders.append([run["category"] for run in result["methods"]["none"]["runs"]])
        self.assertEqual(orders[0], orders[1])
        changes = [sum(a != b for a, b in zip(order, order[1:])) for order in orders]
        self.assertEqual(changes[1:], [1, 11])

    def test_bad_prompts(self):
        def fail(expected: str, *arguments) -> None:
            self.fail_with(expected, "domains", "build", *TINY, *BRIEF, "-o", self.file, *arguments)
            self.assertFalse(self.file.exists())

        fail("no prompts")
        fail("cannot read prompts", "--prompts", self.folder / "none.jsonl")
        fail("has no category", "--prompts", self.write("a.jsonl", [("", "Hello"), ("sums", SUMS[0])]))
        fail("too few", "--prompts", self.write("e.jsonl", [("", "Hello"), ("", "Good day")]))
        fail("--unlabelled", "--prompts", self.prompts, "--unlabelled", "1")
        fail("one domain only", "--prompts", self.write("b.jsonl", [("sums", p) for p in SUMS]))
        fail("one prompt only", "--prompts", self.write("c.jsonl", [("sums", p) for p in SUMS] + [("tales", "Hi")]))
        fail("NAME=FILE", "--domain", self.prompts)
        fail("prompts", "--prompts", self.write("d.jsonl", []))
        self.fail_with(
            "there is no folder", "domains", "build", *TINY, "-o", self.folder / "none" / "x",
            "--prompts", self.prompts,
        )

    def test_bad_files(self):
        self.build("--prompts", self.prompts)
        ask = ["run", *QUICK, "-p", "x", "-n", "2", "--spec", "knnssd"]
        self.fail_with("forerun domains build", *ask, "-m", model("tiny-llama"))
        self.fail_with("another model", *ask, "-m", model("tiny-qwen3"), "--knnssd-domains", self.file)
        self.fail_with(
            "another model", "domains", "route", self.file, "-m", model("tiny-qwen3"), *QUICK, "-p", "x"
        )
        self.fail_with("the prompt is empty", "domains", "route", self.file, *TINY, "-p", "")
        whole = self.file.read_text()
        self.file.write_text(whole[: len(whole) // 2])
        for command in (["domains", "show", self.file], [*ask, "--knnssd-domains", self.file]):
            self.fail_with("damaged", *command)
        self.file.write_text(whole.replace('"forerun_domains":1', '"forerun_domains":9'))
        self.fail_with("version 9", "domains", "show", self.file)
        self.fail_with("there is no file", "domains", "show", self.folder / "none")

    def test_an_interrupt_leaves_no_file(self):
        command = [PROGRAM, "domains", "build", *TINY, "--texts", "6", "--method", "neighbour",
                   "--candidates", "1000000", "--patience", "1000000", "--prompts", self.prompts, "-o", self.file]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()  # the prompts are read, the search begins
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.prompts.name])


if __name__ == "__main__":
    unittest.main()
