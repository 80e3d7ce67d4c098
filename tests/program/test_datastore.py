"""Stores of text: made, looked at, merged, and kept whole."""

import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from program import PROGRAM, ProgramTest, model, run

SMOLLM2 = model("smollm2")
OTHER = model("gemma3-270m")
VOCABULARY = ["-m", SMOLLM2]


def sentences(seed: int, n: int) -> str:
    words = "the quick brown fox jumps over a lazy dog while seven wizards mix green potions".split()
    chooser = random.Random(seed)
    return "".join(" ".join(chooser.choices(words, k=12)) + f" {i}.\n" for i in range(n))


class Store(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.store = self.folder / "store"

    def write(self, name: str, contents: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    def build(self, *arguments, store: Path | None = None) -> dict:
        return self.succeed_json("datastore", "build", store or self.store, *arguments, *VOCABULARY)

    def info(self, store: Path | None = None) -> dict:
        return self.succeed_json("datastore", "info", store or self.store)

    def query(self, text: str, *arguments, store: Path | None = None) -> dict:
        return self.succeed_json("datastore", "query", store or self.store, text, *arguments, *VOCABULARY)

    def verify(self, store: Path | None = None) -> None:
        self.assertIn("is whole", self.succeed("datastore", "verify", store or self.store).stdout.decode())

    def n_tokens(self, text: str) -> int:
        return len(self.succeed_json("tokenize", "--no-special", *VOCABULARY, stdin=text.encode())["tokens"])

    def files(self) -> dict:
        """Everything but the lock, which names the last writer."""
        return {path.name: path.read_bytes() for path in self.store.iterdir() if path.name != "lock"}


class Build(Store):
    def test_a_text_and_what_follows(self):
        text = "Ada likes tea.\n" * 3 + "Ada likes coffee.\n"
        built = self.build(self.write("a.txt", text))
        self.assertEqual((built["documents"], built["tokens"]), (1, self.n_tokens(text) + 1))
        found = self.query("They say Ada likes")
        self.assertEqual(found["count"], 4)
        followers = {entry["text"].split(".")[0]: entry["count"] for entry in found["continuations"]}
        self.assertEqual(followers, {" tea": 3, " coffee": 1})
        shown = self.succeed("datastore", "query", self.store, "Ada likes", *VOCABULARY).stdout.decode()
        self.assertRegex(shown, r'occurs 4 times.*\n +3 +75\.0 %  " tea')
        self.assertEqual(self.query("Zyzzyva!?")["continuations"], [])
        self.verify()

    def test_folders_extensions_and_binary_files(self):
        self.write("tree/b.py", "print(1)\n")
        self.write("tree/sub/a.py", "print(2)\n")
        self.write("tree/readme.md", "# Title\n")
        self.write("tree/image.png", b"\x89PNG\0\0\0binary")
        self.write("tree/.git/config", "hidden\n")
        os.symlink(self.folder / "tree/b.py", self.folder / "tree/link.py")
        built = self.build(self.folder / "tree", "--ext", "py,.md")
        self.assertEqual((built["files"], built["documents"], built["binary_files"]), (3, 3, 0))
        everything = self.build(self.folder / "tree")
        self.assertEqual((everything["documents"], everything["binary_files"]), (0, 1))
        self.assertEqual(everything["known_pieces"], 3)

    def test_jsonl_fields(self):
        rows = [{"q": "How are you?", "turns": ["one", "two"]}, {"q": "Fine.", "n": 3}, {"other": "x"}]
        lines = "\n".join(map(json.dumps, rows)) + "\nnot json\n\n"
        built = self.build(self.write("rows.jsonl", lines), "--jsonl", "q,turns")
        self.assertEqual((built["documents"], built["bad_lines"]), (4, 1))
        self.assertEqual(self.query("How are")["continuations"][0]["count"], 1)
        self.fail_with("no line has text in the field", "datastore", "build", self.folder / "s", self.folder / "rows.jsonl",
                       "--jsonl", "absent", *VOCABULARY)  # fmt: skip

    def test_bytes_that_are_no_text(self):
        built = self.build(self.write("latin.txt", "caf\xe9 au lait\n".encode("latin-1")))
        self.assertEqual((built["documents"], built["replaced_utf8"]), (1, 1))
        self.assertEqual(self.query(" au")["continuations"][0]["text"].strip(), "lait")
        self.assertEqual(self.build(self.write("empty.txt", ""))["documents"], 0)

    def test_long_files_and_lines_are_cut(self):
        lines = self.write("long.txt", "".join(f"line {i} of some words\n" for i in range(130_000)))  # 3.2 MB
        self.assertEqual(self.build(lines)["documents"], 4)
        one_line = self.write("line.txt", "wörter " * 200_000)
        built = self.build(one_line)
        self.assertEqual((built["documents"], built["replaced_utf8"]), (2, 0))

    def test_nothing_is_added_twice(self):
        first = self.write("a.txt", sentences(1, 50))
        self.write("b.txt", sentences(2, 50))
        self.build(first)
        tokens = self.info()["tokens"]
        self.assertEqual(self.build(first)["tokens"], 0)
        moved = self.folder / "moved.txt"
        shutil.copy(first, moved)
        self.assertEqual(self.build(moved, first)["known_pieces"], 2)
        self.assertEqual(self.info()["tokens"], tokens)
        both = self.build(first, self.folder / "b.txt")
        self.assertEqual((both["documents"], both["known_pieces"]), (1, 1))

    def test_goes_on_after_being_killed(self):
        for i in range(60):
            self.write(f"texts/{i}.txt", sentences(i, 40))
        arguments = ["datastore", "build", self.store, self.folder / "texts", "--segment-tokens", "1024", *VOCABULARY]
        for delay in (0.15, 0.3, 0.45, 0.6):
            process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
            if (self.store / "manifest").exists():
                self.verify()
        self.succeed(*arguments)
        whole = self.folder / "whole"
        self.build(self.folder / "texts", store=whole)
        self.assertEqual(
            (self.info()["documents"], self.info()["tokens"]), (self.info(whole)["documents"], self.info(whole)["tokens"])
        )
        self.verify()

    def test_interrupted_it_keeps_what_it_has(self):
        for i in range(400):
            self.write(f"texts/{i}.txt", sentences(i, 400))
        arguments = ["datastore", "build", self.store, self.folder / "texts", "-t", "1", *VOCABULARY]
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        while not (self.store / "manifest").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        if process.returncode != 0:  # a fast machine may have been done
            self.assertIn(b"goes on from here", errors)
        self.verify()
        self.succeed(*arguments)
        self.assertEqual(self.info()["documents"], 400)

    def test_capacity(self):
        for i in range(20):
            self.write(f"texts/{i:02}.txt", sentences(i, 100))
        self.build(self.folder / "texts", "--capacity", "20000", "--segment-tokens", "2000")
        info = self.info()
        self.assertEqual(info["capacity_tokens"], 20000)
        self.assertLessEqual(info["tokens"], 20000)
        self.assertGreater(info["tokens"], 10000)
        self.assertNotEqual(self.query(" 99.")["count"], 0)


class Others(Store):
    def two_stores(self) -> tuple[Path, Path]:
        a, b = self.folder / "a", self.folder / "b"
        self.build(self.write("a.txt", "red apples fall\n"), store=a)
        self.build(self.write("b.txt", "red apples grow\n"), store=b)
        return a, b

    def test_merge_and_compact(self):
        a, b = self.two_stores()
        self.succeed("datastore", "merge", a, b, "-o", self.store)
        self.assertEqual(self.info()["documents"], 2)
        self.assertEqual({c["text"].split("\n")[0] for c in self.query("red apples")["continuations"]}, {" fall", " grow"})
        self.assertEqual(self.build(self.folder / "a.txt", self.folder / "b.txt")["documents"], 0, "it knows their sources")
        self.fail_with("exists already", "datastore", "merge", a, b, "-o", self.store)
        for i in range(5):
            self.build(self.write(f"{i}.txt", sentences(i, 10)))
        self.succeed("datastore", "compact", self.store)
        self.assertEqual((len(self.info()["segments"]), self.info()["documents"]), (1, 7))
        self.verify()

    def test_import(self):
        texts = ["one two three four", "one two three five"]
        ids = [[t["id"] for t in self.succeed_json("tokenize", "--no-special", *VOCABULARY, "-p", text)["tokens"]] for text in texts]
        begin = 1  # the token that begins texts
        entries = [begin, *ids[0], begin, *ids[1]]
        chunk = struct.pack(f"<{len(entries)}H", *entries)
        index = struct.pack("<I", len(chunk)) + chunk + struct.pack(f"<I{len(entries)}i", 4 * len(entries), *range(len(entries)))
        path = self.write("corpus.idx", index)
        arguments = ["datastore", "import", path, "-o", self.store, "--separator", begin, *VOCABULARY]
        self.succeed(*arguments)
        self.succeed(*arguments)
        self.assertEqual(self.info()["documents"], 2)
        found = self.query("one two three")
        self.assertEqual({c["text"]: c["count"] for c in found["continuations"]}, {" four": 1, " five": 1})
        self.fail_with("cut short", "datastore", "import", self.write("bad.idx", index[:-3]), "-o", self.folder / "s", *VOCABULARY)

    def test_info_in_words(self):
        self.build(self.write("a.txt", "some words\n"))
        text = self.succeed("datastore", "info", self.store).stdout.decode()
        self.assertRegex(text, r"documents +1\n")
        self.assertRegex(text, r"segments +segment-\d+: 1 documents")

    def test_help(self):
        for command in ([], ["build"], ["info"], ["query"], ["merge"], ["compact"], ["verify"], ["import"]):
            self.assertIn("Usage:", self.succeed("datastore", *command, "--help").stdout.decode())


class Faults(Store):
    def setUp(self):
        super().setUp()
        self.text = self.write("a.txt", sentences(1, 50))
        self.build(self.text)

    def test_another_tokenizer(self):
        before = self.files()
        self.fail_with("another tokenizer", "datastore", "query", self.store, "x", "-m", OTHER)
        self.fail_with("another tokenizer", "datastore", "build", self.store, self.text, "-m", OTHER)
        self.assertEqual(self.files(), before)

    def test_no_such_store_or_input(self):
        for command in (["info"], ["verify"], ["compact"]):
            self.fail_with("there is no datastore", "datastore", *command, self.folder / "none")
        self.fail_with("there is no datastore", "datastore", "query", self.folder / "none", "x", *VOCABULARY)
        self.fail_with("is not a datastore", "datastore", "info", self.folder)
        self.fail_with("there is no file", "datastore", "build", self.folder / "s", self.folder / "none", *VOCABULARY)
        self.assertFalse((self.folder / "s").exists())
        self.fail_with("not empty", "datastore", "build", self.folder, self.text, *VOCABULARY)

    def test_damage(self):
        segment = next(self.store.glob("segment-*"))
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
        message = self.fail_with("is damaged", "datastore", "verify", self.store)
        self.assertIn("verify --repair", message)
        segment.write_bytes(data[:100])
        for command in (["info", self.store], ["compact", self.store], ["query", self.store, "x", *VOCABULARY]):
            self.fail_with("verify --repair", "datastore", *command)
        self.assertIn("dropped", self.succeed("datastore", "verify", "--repair", self.store).stdout.decode())
        self.assertEqual(self.info()["documents"], 0)
        self.verify()

    def test_versions_and_manifests(self):
        manifest = self.store / "manifest"
        text = manifest.read_text()
        manifest.write_text(text.replace("datastore 1", "datastore 2"))
        self.fail_with("format version 2", "datastore", "info", self.store)
        manifest.write_text(text.replace("capacity 0", "capacity 9"))
        self.fail_with("checksum", "datastore", "info", self.store)
        manifest.write_text(text)
        self.verify()

    def test_a_full_disk(self):
        before = self.files()
        more = self.write("more.txt", sentences(2, 3000))

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        result = subprocess.run(
            [PROGRAM, "datastore", "build", self.store, more, *VOCABULARY], preexec_fn=limit, capture_output=True, timeout=120
        )
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr.decode(), r"\Aforerun: cannot write [^\n]+\n\Z")
        self.assertEqual(self.files(), before)
        self.assertGreater(self.build(more)["tokens"], 0)

    def test_two_writers(self):
        for i in range(300):
            self.write(f"texts/{i}.txt", sentences(i, 300))
        arguments = ["datastore", "build", self.store, self.folder / "texts", "-t", "1", *VOCABULARY]
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            # Until it holds the lock, and has written its number into it.
            result = run("datastore", "compact", self.store)
            while process.poll() is None and (result.returncode == 0 or b"by another process" in result.stderr):
                result = run("datastore", "compact", self.store)
            if process.poll() is None:
                self.assertIn(f"is being written by process {process.pid}", result.stderr.decode())
                self.assertGreater(self.query("the quick")["count"], 0, "reading goes on")
        finally:
            process.wait(120)
        self.verify()


if __name__ == "__main__":
    unittest.main()
