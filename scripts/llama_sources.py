#!/usr/bin/env python3
"""Fetches llama.cpp's sources: llama_sources.py FOLDER.

They come inside the source archive of llama-cpp-python. Only what forerun builds is
unpacked, into a folder beside FOLDER that is renamed when it is complete. Run by
setup.sh with the scripts' own Python environment.
"""

import os
import shutil
import sys
import tarfile
from pathlib import Path, PurePosixPath

from forerun_models.archives import download, downloads
from forerun_models.cache import scratch_dir
from forerun_models.errors import SetupError

# Relative to vendor/llama.cpp; a folder ends in "/". Of ggml's backends only those
# that forerun can be built with.
_WANTED = (
    "CMakeLists.txt",
    "LICENSE",
    "licenses/",
    "cmake/",
    "include/",
    "src/",
    "ggml/CMakeLists.txt",
    "ggml/cmake/",
    "ggml/include/",
    "ggml/src/ggml-cpu/",
    "ggml/src/ggml-cuda/",
    "ggml/src/ggml-rpc/",
    "tools/rpc/",
    "vendor/",
    "common/chat",
    "common/common.h",
    "common/jinja/",
    "common/json",
    "common/log.h",
    "common/parsers/",
    "common/peg-parser.",
    "common/trie.",
    "common/unicode.",
)


def is_wanted(path: PurePosixPath) -> bool:
    if path.parent == PurePosixPath("ggml/src"):  # its own files
        return True
    return str(path).startswith(_WANTED) and not str(path).startswith("vendor/cpp-httplib/")


def unpack(archive: Path, target: Path) -> int:
    """Unpacks the wanted files into `target`; returns how many."""
    n_files = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts
            if not member.isreg() or parts[1:3] != ("vendor", "llama.cpp") or ".." in parts:
                continue
            path = PurePosixPath(*parts[3:])
            if not is_wanted(path):
                continue
            destination = target / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            with tar.extractfile(member) as source, open(destination, "wb") as out:
                shutil.copyfileobj(source, out)
            n_files += 1
    return n_files


def fetch(target: Path) -> None:
    sources = downloads()["llama_cpp"]
    print(f"forerun: fetching llama.cpp's sources ({sources['size_mb']} MB)", flush=True)
    with scratch_dir(target.parent) as scratch:
        archive = download(sources, scratch, source=True)
        tree = scratch / "tree"
        if unpack(archive, tree) == 0 or not (tree / "src" / "llama-vocab.cpp").exists():
            raise SetupError(f"{sources['package']}: the archive holds no llama.cpp sources where they should be")
        try:
            os.rename(tree, target)
        except OSError:
            if not target.exists():  # else another run was faster
                raise


def main() -> int:
    try:
        fetch(Path(sys.argv[1]))
    except SetupError as error:
        print(f"forerun: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"forerun: {error.filename or 'llama.cpp'}: {error.strerror or error}: check the disk", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("forerun: interrupted; run the same command again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
