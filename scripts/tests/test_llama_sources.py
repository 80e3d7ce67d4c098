"""Unpacking llama.cpp's sources: what is needed, and nothing outside the target folder."""

import io
import tarfile
import tempfile
import unittest
from pathlib import Path, PurePosixPath

import llama_sources


class TestUnpack(unittest.TestCase):
    def test_takes_what_the_build_needs(self):
        for name in ("CMakeLists.txt", "src/models/llama.cpp", "ggml/src/ggml.c", "ggml/src/ggml-cuda/fattn.cu",
                     "ggml/src/ggml-rpc/ggml-rpc.cpp", "tools/rpc/rpc-server.cpp",
                     "common/jinja/lexer.cpp", "common/json.h", "vendor/nlohmann/json.hpp", "LICENSE"):  # fmt: skip
            self.assertTrue(llama_sources.is_wanted(PurePosixPath(name)), name)
        for name in (".git", "README.md", "ggml/src/ggml-metal/x.m", "tools/server/server.cpp", "common/arg.cpp",
                     "vendor/cpp-httplib/httplib.h", "models/x.gguf"):  # fmt: skip
            self.assertFalse(llama_sources.is_wanted(PurePosixPath(name)), name)

    def test_never_writes_outside(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "a.tar.gz"
            with tarfile.open(archive, "w:gz") as tar:
                for name in ("p/vendor/llama.cpp/src/a.cpp", "p/vendor/llama.cpp/src/../../../../../b.cpp"):
                    info = tarfile.TarInfo(name)
                    info.size = 1
                    tar.addfile(info, io.BytesIO(b"x"))
                link = tarfile.TarInfo("p/vendor/llama.cpp/src/link")
                link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(link)
            target = Path(folder) / "tree"
            self.assertEqual(llama_sources.unpack(archive, target), 1)
            self.assertEqual([p.name for p in target.rglob("*") if not p.is_dir()], ["a.cpp"])


if __name__ == "__main__":
    unittest.main()
