"""The library as others use it: installed, found by CMake, linked by the example."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import model, run

BUILD = Path(os.environ["FORERUN_BUILD"])
EXAMPLES = Path(os.environ["FORERUN_EXAMPLES"])


def succeed(*command) -> str:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stdout}{result.stderr}")
    return result.stdout


class Package(unittest.TestCase):
    def test_example_builds_against_the_installed_package(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = Path(folder, "prefix"), Path(folder, "build")
            succeed("cmake", "--install", BUILD, "--prefix", prefix)
            succeed("cmake", "-S", EXAMPLES, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
            succeed("cmake", "--build", build)
            prompts = ["the quick brown fox", "the quick brown fox jumps"]
            output = succeed(build / "answer", model("tiny-llama"), *prompts)
            self.assertIn("tokens per pass", output)
            methods = succeed(build / "methods")
            self.assertTrue(methods.startswith("auto: "), methods)
            self.assertIn("\n  pld-ngram=", methods)
            # The same text as the program's.
            plain = run("run", "-m", model("tiny-llama"), "--raw", "-p", prompts[0], "-n", 64, "--seed", 1, "--spec", "none")
            self.assertEqual(output.split("\n---\n")[0], plain.stdout.decode(errors="replace").removesuffix("\n"))
            # Of forerun's own libraries nothing else is needed, and ggml is not shown.
            symbols = succeed("nm", "-D", "--defined-only", next(prefix.rglob("libforerun.so")))
            self.assertNotIn("ggml_", symbols)


if __name__ == "__main__":
    unittest.main()
