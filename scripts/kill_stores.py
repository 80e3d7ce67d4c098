#!/usr/bin/env python3
"""Kills the program in the middle of writing to datastores, and looks whether anything is lost.

Half of the kills hit `forerun datastore build`, half `forerun run --live-datastore`; each at a
write, sync, rename or removal chosen at random (tests/support/kill_at_write.h), a write being
cut off anywhere. After each kill the store must verify as whole, every document that was
acknowledged must be there, none twice, and none that nobody added.

    scripts/kill_stores.py --kills 1000

ends with one line that says how many kills hit a write, and with exit code 1 if anything was lost.
"""

import argparse
import collections
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forerun" / "models"
LIVE_PROMPT_TOKENS = 4  # that precede an answer in a live datastore
KILLS_PER_STORE = 25


class Lost(Exception):
    pass


def documents_of_segment(data: bytes) -> list[tuple]:
    """src/retrieval/segment_file.h has the format."""
    _, _, token_bytes, _, _, _, n_tokens, _, _, text_offset = struct.unpack_from("<QIIQIIQQQQ", data)
    tokens = struct.unpack_from(f"<{n_tokens}{'H' if token_bytes == 2 else 'i'}", data, text_offset)
    separator = 0xFFFF if token_bytes == 2 else -1
    documents, document = [], []
    for token in tokens:
        if token != separator:
            document.append(token)
            continue
        documents.append(tuple(document))
        document = []
    return documents


def documents_of_journal(data: bytes) -> list[tuple]:
    """src/retrieval/store/record_log.h has the format; a record that is cut off ends it."""
    documents, offset = [], 40
    while offset + 16 <= len(data) and data[offset : offset + 4] == b"FREC":
        (n_bytes,) = struct.unpack_from("<I", data, offset + 4)
        begin = offset + 16
        if begin + n_bytes > len(data):
            break
        documents.append(struct.unpack_from(f"<{n_bytes // 4}i", data, begin))
        offset = begin + (n_bytes + 7) // 8 * 8
    return documents


def documents_in(store: Path) -> list[tuple]:
    documents = []
    for line in (store / "manifest").read_text().splitlines():
        kind, number = line.split()[:2]
        if kind == "segment":
            documents += documents_of_segment((store / f"segment-{int(number):06}").read_bytes())
        elif kind == "journal":
            documents += documents_of_journal((store / f"journal-{int(number):06}").read_bytes())
    return documents


class Killer:
    def __init__(self, options: argparse.Namespace, folder: Path):
        self.options = options
        self.folder = folder
        self.random = random.Random(options.seed)

    def run(self, *arguments, **environment) -> subprocess.CompletedProcess:
        command = [self.options.program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, env={**os.environ, **environment}, timeout=300)

    def killed(self, store: Path, kill_at: int, *arguments) -> subprocess.CompletedProcess:
        """Killed at that write to the store, unless it makes fewer."""
        environment = {"LD_PRELOAD": str(self.options.library), "KILL_UNDER": str(store), "KILL_AT": str(kill_at)}
        result = self.run(*arguments, **environment)
        if result.returncode not in (0, -signal.SIGKILL):
            raise Lost(f"{arguments[0]} fails after a kill: {result.stderr.decode()}")
        return result

    def check(self, store: Path, must: set, may: set, once: bool) -> None:
        if not (store / "manifest").exists():
            if must:
                raise Lost(f"{store} is gone")
            return
        verified = self.run("datastore", "verify", store)
        if verified.returncode != 0:
            raise Lost(f"{store} is damaged: {verified.stderr.decode()}")
        found = collections.Counter(documents_in(store))
        if missing := must - found.keys():
            raise Lost(f"{store} has lost {len(missing)} documents that were acknowledged")
        if strange := found.keys() - may:
            raise Lost(f"{store} has {len(strange)} documents that nobody added")
        if once and any(n > 1 for n in found.values()):
            raise Lost(f"{store} has documents twice")


def kill_builds(killer: Killer, n_kills: int) -> int:
    """Builds that grow a store, until so many were killed. How many ended by themselves."""
    texts = killer.folder / "texts"
    texts.mkdir()
    words = "the quick brown fox jumps over a lazy dog while seven wizards mix green potions".split()
    for i in range(KILLS_PER_STORE):
        for j in range(6):
            lines = [" ".join(killer.random.choices(words, k=12)) + f" {i} {j}.\n" for _ in range(10)]
            (texts / f"{i:02}-{j}.txt").write_text("".join(lines))

    def build(store: Path, last: int) -> list:
        files = [path for path in sorted(texts.iterdir()) if int(path.name[:2]) <= last]
        vocabulary = ["-m", killer.options.vocabulary, "-t", "1", "--segment-tokens", "1024"]
        return ["datastore", "build", store, *files, *vocabulary]

    reference = killer.folder / "reference"
    killer.run(*build(reference, KILLS_PER_STORE))
    everything = set(documents_in(reference))
    if len(everything) != KILLS_PER_STORE * 6:
        raise Lost("the reference is not what was to be built")

    n_killed = n_ended = n_stores = 0
    while n_killed < n_kills:
        if n_stores > 0 and n_killed == 0:
            raise Lost("no run was killed: the library is not preloaded")
        store = killer.folder / f"built-{n_stores}"
        n_stores += 1
        must: set = set()
        for last in range(KILLS_PER_STORE):
            # Some in the first commit, some in later ones or in merging.
            kill_at = killer.random.randrange(1, killer.random.choice((15, 40, 120)))
            result = killer.killed(store, kill_at, *build(store, last))
            if result.returncode == 0:
                n_ended += 1
            else:
                n_killed += 1
            killer.check(store, must, everything, once=True)
            if (store / "manifest").exists():
                must = set(documents_in(store))  # what is there once stays
            if result.returncode == 0 and len(must) != (last + 1) * 6:
                raise Lost(f"{store} has {len(must)} documents after a build of {(last + 1) * 6}")
            if n_killed == n_kills:
                break
        # Whoever builds again gets all of it, once.
        killer.run(*build(store, KILLS_PER_STORE))
        killer.check(store, everything, everything, once=True)
    return n_ended


def kill_live_runs(killer: Killer, n_kills: int) -> int:
    """Answers that go to a live datastore, until so many runs were killed. How many ended by themselves."""
    n_killed = n_ended = n_stores = 0
    while n_killed < n_kills:
        if n_stores > 0 and n_killed == 0:
            raise Lost("no run was killed: the library is not preloaded")
        store = killer.folder / f"live-{n_stores}"
        n_stores += 1
        must: set = set()
        may: set = set()
        for i in range(KILLS_PER_STORE):
            prompt = f"{n_stores} {i} " + "".join(killer.random.choices("abcdefgh ", k=20))
            arguments = ["run", "--live-datastore", store, "-m", killer.options.model, "-p", prompt, "-n", "8", "--seed", "1",
                         "-t", "1", "--no-pin", "--raw", "--spec", "sssd", "--tree", "4", "--json"]  # fmt: skip
            kill_at = killer.random.randrange(1, 20 if i == 0 else 9)
            result = killer.killed(store, kill_at, *arguments)
            document = answer_document(killer, arguments, store)
            may.add(document)
            if result.stdout.endswith(b"\n"):
                must.add(document)  # it was told
            if result.returncode == 0:
                n_ended += 1
            else:
                n_killed += 1
            killer.check(store, must, may, once=False)
            if n_killed == n_kills:
                break
    return n_ended


def answer_document(killer: Killer, arguments: list, store: Path) -> tuple:
    """What the run adds to its store, from a run that has none: the same answer."""
    without = [argument for argument in arguments if argument not in ("--live-datastore", store)]
    answer = json.loads(killer.run(*without).stdout)
    return tuple(answer["prompt_tokens"][-LIVE_PROMPT_TOKENS:] + answer["tokens"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=Path, default=ROOT / "build/bin/forerun")
    parser.add_argument("--library", type=Path, default=ROOT / "build/tests/libkill_at_write.so")
    parser.add_argument("--model", type=Path, default=MODELS / "tiny-llama.gguf", help="that answers")
    parser.add_argument("--vocabulary", type=Path, default=MODELS / "smollm2.gguf", help="that stores are built for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killer = Killer(options, Path(folder).resolve())
        try:
            n_builds_ended = kill_builds(killer, options.kills // 2)
            n_runs_ended = kill_live_runs(killer, options.kills - options.kills // 2)
        except Lost as lost:
            print(f"kill_stores: {lost}", file=sys.stderr)
            return 1
    print(
        f"{options.kills} kills in the middle of writes ({options.kills // 2} of builds, {options.kills - options.kills // 2} of "
        f"live runs; {n_builds_ended} builds and {n_runs_ended} runs ended before): nothing acknowledged was lost"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
