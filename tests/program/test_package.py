"""The library as others use it: installed and found by CMake, or fetched and built in their project."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import model, run

BUILD = Path(os.environ["FORERUN_BUILD"])
EXAMPLES = Path(os.environ["FORERUN_EXAMPLES"])
LLAMA_TARGETS = os.environ["FORERUN_LLAMA_TARGETS"]


def succeed(*command) -> str:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=800)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stdout}{result.stderr}")
    return result.stdout


def shown(library: Path) -> list[tuple[str, str]]:
    """What a shared library defines for others: nm's letter and the name in C++."""
    lines = succeed("nm", "-D", "-C", "--defined-only", library).splitlines()
    return [(letter, name) for _, letter, name in (line.split(" ", 2) for line in lines)]


class Library(unittest.TestCase):
    def check_examples(self, build: Path):
        prompts = ["the quick brown fox", "the quick brown fox jumps"]
        output = succeed(build / "answer", model("tiny-llama"), *prompts)
        self.assertIn("tokens per pass", output)
        # The same text as the program's.
        plain = run("run", "-m", model("tiny-llama"), "--raw", "-p", prompts[0], "-n", 64, "--seed", 1, "--spec", "none")
        self.assertEqual(output.split("\n---\n")[0], plain.stdout.decode(errors="replace").removesuffix("\n"))
        methods = succeed(build / "methods")
        self.assertTrue(methods.startswith("auto: "), methods)
        self.assertIn("\n  pld-ngram=", methods)
        # What the library throws is caught outside.
        for command in (["methods", "nope"], ["answer", "nope.gguf", "text"]):
            failed = subprocess.run([build / command[0], *command[1:]], capture_output=True, text=True, timeout=60)
            self.assertEqual(failed.returncode, 1, failed.stderr)
            self.assertRegex(failed.stderr, rf"\A{command[0]}: [^\n]*nope[^\n]*\n\Z")

    def check_symbols(self, library: Path):
        """Nothing is shown but the interface."""
        public = (
            "forerun::Engine::", "forerun::Tokenizer::", "forerun::DraftCounts::", "forerun::SpeculationStatistics::", "forerun::to_string(",
            "forerun::drafting_method", "forerun::shared_drafting_options",
        )  # fmt: skip
        names = [name for letter, name in shown(library) if letter not in "VWu"]
        self.assertIn("forerun::Engine::step()", names)
        self.assertEqual([name for name in names if not name.startswith(public)], [])

    def check_weak_symbols(self, library: Path):
        """Beside templates of the standard library, which are everybody's (GCC; clang shows more of those)."""
        weak = [name for letter, name in shown(library) if letter in "VWu"]
        self.assertIn("typeinfo for forerun::Error", weak)
        for name in weak:
            self.assertNotRegex(name, r"ggml|llama|jinja|nlohmann|\A(\w+ )*forerun::(?!Error\b)")

    def test_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = Path(folder, "prefix"), Path(folder, "build")
            succeed("cmake", "--install", BUILD, "--prefix", prefix)
            succeed("cmake", "-S", EXAMPLES, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
            succeed("cmake", "--build", build)
            self.check_examples(build)
            library = next(prefix.rglob("libforerun.so"))
            self.check_symbols(library)
            self.check_weak_symbols(library)

    def test_fetched(self):
        # Kept, so that what did not change is not compiled again. By clang, which takes half as long.
        build = BUILD / "fetched"
        succeed(
            "cmake", "-S", EXAMPLES / "fetched", "-B", build, "-G", "Ninja", "-DCMAKE_CXX_FLAGS=-O0",
            "-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++",
            "-DFORERUN_KERNEL_SETS=portable",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=32",
            f"-DFORERUN_LLAMA_TARGETS={LLAMA_TARGETS}",
        )  # fmt: skip
        succeed("cmake", "--build", build)
        self.check_examples(build)
        self.check_symbols(next(build.rglob("libforerun.so")))
        # Our rules are for us: no warning is an error, and the other project's sources get no flags of ours.
        commands = {entry["file"]: entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())}
        self.assertFalse([command for command in commands.values() if "-Werror" in command])
        own = next(command for file, command in commands.items() if "/answer.dir/" in file)
        self.assertNotRegex(own, r" -W| -fvisibility")
        self.assertNotIn(str(EXAMPLES.parent / "src"), own)
        # Neither tests nor the program nor commands for them, and nothing in folders of the other project's.
        self.assertFalse([file for file in commands if "_test.dir/" in file or "/src/cli/" in file])
        self.assertFalse((build / "bin").exists())
        cache = (build / "CMakeCache.txt").read_text()
        self.assertIn("CMAKE_BUILD_TYPE:STRING=\n", cache)


if __name__ == "__main__":
    unittest.main()
