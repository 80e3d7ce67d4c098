#!/usr/bin/env python3
"""Puts published chat templates into the cache and prints the folder.

They come inside the source archive of llama.cpp that the build uses too: a folder of files, and texts in one of its
tests. Run with the scripts' own Python environment.
"""

import ast
import os
import re
import sys
import tarfile
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forerun_models.archives import download, downloads  # noqa: E402
from forerun_models.cache import cache_dir, scratch_dir  # noqa: E402
from forerun_models.errors import SetupError  # noqa: E402

_FOLDER = PurePosixPath("vendor/llama.cpp/models/templates")
_TEST = PurePosixPath("vendor/llama.cpp/tests/test-chat-template.cpp")
_IN_TEST = re.compile(r'\.name= \*/ "([^"]*)",\s*/\* \.template_str= \*/ (?:U8C\()?("(?:[^"\\]|\\.)*")')


def templates_in_test(source: str) -> dict[str, str]:
    """Of each template that the test names, its text. C's literals and Python's are the same there."""
    return {name: ast.literal_eval(text) for name, text in _IN_TEST.findall(source)}


def unpack(archive: Path, target: Path) -> None:
    target.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if not member.isreg() or not (path == _TEST or (path.parent == _FOLDER and path.suffix == ".jinja")):
                continue
            text = tar.extractfile(member).read().decode()
            found = templates_in_test(text) if path == _TEST else {path.stem: text}
            for name, template in found.items():
                file_name = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
                (target / f"{file_name}.jinja").write_text(template)


def main() -> int:
    sources = downloads()["llama_cpp"]
    try:
        target = cache_dir() / f"templates-{sources['version']}"
        if not target.exists():
            print(f"forerun: fetching chat templates ({sources['size_mb']} MB)", file=sys.stderr, flush=True)
            with scratch_dir(target.parent) as scratch:
                unpack(download(sources, scratch, source=True), scratch / "templates")
                os.rename(scratch / "templates", target)
    except (SetupError, OSError) as error:
        print(f"forerun: {error}", file=sys.stderr)
        return 1
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
