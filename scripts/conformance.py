#!/usr/bin/env python3
"""Runs llama.cpp's own tests of its server against `forerun serve`.

They come with llama.cpp's sources. The model is stories260K.gguf, which most of them use; what needs
another is skipped, with a reason (conformance/skips.toml). Fails if a test fails that is not skipped.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path, PurePosixPath

from forerun_models.archives import download, downloads
from forerun_models.cache import cache_dir, scratch_dir

HERE = Path(__file__).resolve().parent / "conformance"
FOLDERS = (PurePosixPath("tools/server/tests"), PurePosixPath("models/templates"))


def fetched_tests() -> Path:
    """llama.cpp's folder with what the tests need of it."""
    sources = downloads()["llama_cpp"]
    target = cache_dir() / f"llama.cpp-tests-{sources['version']}"
    if target.exists():
        return target
    with scratch_dir(target.parent) as scratch:
        archive = download(sources, scratch, source=True)
        tree = scratch / "tree"
        with tarfile.open(archive) as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                path = PurePosixPath(*parts[3:])
                wanted = parts[1:3] == ("vendor", "llama.cpp") and any(path.is_relative_to(f) for f in FOLDERS)
                if not wanted or not member.isreg() or ".." in parts:
                    continue
                destination = tree / path
                destination.parent.mkdir(parents=True, exist_ok=True)
                destination.write_bytes(tar.extractfile(member).read())
        os.rename(tree, target)
    return target


def run_tests(options: argparse.Namespace, python: str, outcomes: Path) -> int:
    tests = fetched_tests() / "tools" / "server" / "tests"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, tests))),
        "LLAMA_SERVER_BIN_PATH": str(HERE / "llama_server.py"),
        "FORERUN_PROGRAM": str(options.program.resolve()),
        "FORERUN_CONFORMANCE_MODEL": str(options.model.resolve()),
        "FORERUN_CONFORMANCE_OUTCOMES": str(outcomes),
    }
    command = [python, "-m", "pytest", "--noconftest", "-p", "conformance_plugin", "-p", "no:cacheprovider",
               "-q", "--tb", "short" if options.verbose else "line", "unit"]  # fmt: skip
    if options.only:
        command += ["-k", options.only]
    return subprocess.run(command, cwd=tests, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="stories260K.gguf")
    parser.add_argument("--program", type=Path, default=Path("build/bin/forerun"))
    parser.add_argument("--python", default=sys.executable, help="with conformance/requirements.txt")
    parser.add_argument("--only", help="an expression of pytest's -k")
    parser.add_argument("--verbose", action="store_true", help="say more of what fails")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.json"
        code = run_tests(options, options.python, outcomes)
        counts = Counter(json.loads(outcomes.read_text()).values()) if outcomes.exists() else Counter()
    print(f"forerun: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return code


if __name__ == "__main__":
    sys.exit(main())
