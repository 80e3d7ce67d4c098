"""Stores of text: made, looked at, merged, and kept whole."""

import fcntl
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

from program import PROGRAM, QUICK, ProgramTest, model, run

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
        for i in range(150):
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
        self.assertEqual(self.info()["documents"], 150)

    def test_nothing_to_build_from(self):
        for name, contents in (("none/.hidden", "x"), ("binary/a.bin", b"\0\1"), ("empty/a.txt", "")):
            folder = self.write(name, contents).parent
            self.fail_with("nothing was added", "datastore", "build", self.store, folder, *VOCABULARY)
            self.assertFalse(self.store.exists())
        self.fail_with("end in py", "datastore", "build", self.store, self.folder / "empty", "--ext", "py", *VOCABULARY)
        self.store.mkdir()
        self.fail_with("nothing was added", "datastore", "build", self.store, self.folder / "empty", *VOCABULARY)
        self.assertEqual(list(self.store.iterdir()), [])
        self.build(self.write("a.txt", "words\n"))
        self.assertEqual(self.build(self.folder / "empty")["documents"], 0)
        self.assertEqual(self.info()["documents"], 1)

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
        before = self.files()
        bad = self.write("bad.idx", struct.pack("<I", 4) + struct.pack("<2H", 5, 6) + struct.pack("<I2i", 8, 0, 1) + index[:-3])
        for store in (self.store, self.folder / "s", self.folder / "empty"):
            if store.name == "empty":
                store.mkdir()
            self.fail_with("cut short", "datastore", "import", bad, "-o", store, *VOCABULARY)
        self.assertEqual(self.files(), before, "its first chunk is good, but all or nothing is added")
        self.assertFalse((self.folder / "s").exists())
        self.assertEqual(list((self.folder / "empty").iterdir()), [])

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
        self.assertIn("all documents", self.succeed("datastore", "verify", "--repair", self.store).stdout.decode())
        self.assertEqual(self.build(self.text)["known_pieces"], 1, "the text was whole")
        segment = next(self.store.glob("segment-*"))
        segment.write_bytes(segment.read_bytes()[:100])
        for command in (["info", self.store], ["compact", self.store], ["query", self.store, "x", *VOCABULARY]):
            self.fail_with("verify --repair", "datastore", *command)
        self.assertIn("lost: 1 documents", self.succeed("datastore", "verify", "--repair", self.store).stdout.decode())
        self.assertEqual(self.info()["documents"], 0)
        self.verify()
        self.assertEqual(self.build(self.text)["documents"], 1, "it was forgotten")

    def test_what_is_lost_is_brought_back(self):
        rows = [json.dumps({"q": sentences(i, 3)}) + "\n" for i in range(60)]
        inputs = [self.write("rows.jsonl", "".join(rows)), "--jsonl", "q"]
        store = self.folder / "rows"
        self.build(*inputs, store=store)
        tokens = self.info(store)["tokens"]
        segment = next(store.glob("segment-*"))
        data = bytearray(segment.read_bytes())
        (text,) = struct.unpack_from("<Q", data, 56)  # where its text begins
        data[text + tokens] ^= 1  # in the middle of it, at two bytes per token
        segment.write_bytes(data)
        said = self.succeed("datastore", "verify", "--repair", store).stdout.decode()
        kept = self.info(store)["documents"]
        self.assertGreater(kept, 45)
        self.assertIn(f"lost: {60 - kept} documents", said)
        again = self.build(*inputs, store=store)
        self.assertEqual((again["documents"], again["known_documents"]), (60 - kept, kept))
        self.assertEqual((self.info(store)["documents"], self.info(store)["tokens"]), (60, tokens))
        self.assertEqual(self.build(*inputs, store=store)["known_pieces"], 1, "and it knows that")
        self.verify(store)

    def test_versions_and_manifests(self):
        manifest = self.store / "manifest"
        text = manifest.read_text()
        manifest.write_text(text.replace("datastore 1", "datastore 99"))
        self.fail_with("made by a newer version of forerun", "datastore", "info", self.store)
        manifest.write_text(text.replace("capacity 0", "capacity 9"))
        self.fail_with("checksum", "datastore", "info", self.store)
        manifest.write_text(text)
        self.verify()

    def test_newer_files(self):
        for prefix, offset in (("segment-", 8), ("journal-", 4), ("sources", 4)):
            path = next(self.store.glob(prefix + "*"))
            before = path.read_bytes()
            path.write_bytes(before[:offset] + bytes([99]) + before[offset + 1 :])
            for command in (["compact"], ["verify"], ["verify", "--repair"]):
                self.fail_with("made by a newer version of forerun", "datastore", *command, self.store)
            path.write_bytes(before)
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
        for i in range(120):
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


class Answers(Store):
    """A store makes answers faster and never costs one."""

    def setUp(self):
        super().setUp()
        self.build(self.write("a.txt", sentences(1, 50)))
        self.arguments = ["run", *QUICK, "-m", SMOLLM2, "-p", "The quick brown fox", "-n", "4", "--temp", "0", "--spec", "sssd", "--tree", "4"]
        self.expected = self.succeed(*self.arguments).stdout

    def warned(self, expected: str, *arguments, limit=None) -> None:
        command = [PROGRAM, *map(str, [*self.arguments, *arguments])]
        result = subprocess.run(command, capture_output=True, timeout=120, preexec_fn=limit)
        errors = result.stderr.decode()
        self.assertEqual((result.returncode, result.stdout), (0, self.expected), errors)
        warnings = [line for line in errors.splitlines() if line.startswith("forerun: ")]
        self.assertEqual(len(warnings), 1, errors)
        self.assertIn(expected, warnings[0])
        self.assertIn("tokens", errors, "the statistics")

    def test_somebody_else_writes(self):
        before = self.files()
        with open(self.store / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.warned("drafting from it", "--live-datastore", self.store)
            self.fail_with("is being written", "datastore", "compact", self.store)
        self.assertEqual(self.files(), before)
        self.succeed(*self.arguments, "--live-datastore", self.store)
        self.assertEqual(self.info()["documents"], 2)

    def test_a_store_that_cannot_be_made(self):
        self.warned("cannot make", "--live-datastore", self.write("file", "x") / "store")

    def test_a_full_disk(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

        self.warned("cannot write", "--live-datastore", self.folder / "new", limit=limit)
        self.assertFalse((self.folder / "new").exists())
        self.warned("cannot write", "--live-datastore", self.store, limit=limit)

    def test_damaged_and_newer_stores(self):
        segment = next(self.store.glob("segment-*"))
        whole = segment.read_bytes()
        newer = whole[:8] + bytes([99]) + whole[9:]
        for contents, expected in ((whole[:200], "verify --repair"), (newer, "newer version of forerun")):
            segment.write_bytes(contents)
            for flag in ("--datastore", "--live-datastore"):
                self.warned(expected, flag, self.store)
        self.assertEqual(segment.read_bytes(), newer)

    def test_wrong_names_are_errors(self):
        self.fail_with("there is no datastore", *self.arguments, "--datastore", self.folder / "none")
        self.fail_with("is not a datastore", *self.arguments, "--datastore", self.folder)
        self.fail_with("not empty", *self.arguments, "--live-datastore", self.folder)
        for flag in ("--datastore", "--live-datastore"):
            self.fail_with("another tokenizer", "run", *QUICK, "-m", model("tiny-llama"), "-p", "x", "-n", "1", flag, self.store)


if __name__ == "__main__":
    unittest.main()
