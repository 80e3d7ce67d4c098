"""Every page of results, measured for a try: it has all of its tables."""

import importlib
import json
import os
import re
import shlex
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

from program import PROGRAM, model

FAKE_SERVER = Path(__file__).parent / "fake_llama_server.py"
RESULTS = Path(__file__).resolve().parents[2] / "scripts" / "results"
sys.path.insert(0, str(RESULTS))

from library.page import Page  # noqa: E402

# Enough of each category to split them in halves.
PROMPTS = [
    {"id": f"{category}{i}", "category": category, "turns": [f"{question} {i}? Say it again: {question} {i}!"]}
    for category, question in (("chat", "Why is the sky blue and not"), ("sums", "What is 13 and 4 and"))
    for i in range(8)
]


def page_classes() -> list[type[Page]]:
    for path in sorted(RESULTS.glob("*.py")):
        importlib.import_module(path.stem)
    return Page.__subclasses__()


class Pages(unittest.TestCase):
    def test_every_page_has_all_of_its_tables(self):
        classes = page_classes()
        self.assertGreaterEqual(len(classes), 5)
        for page in classes:
            with self.subTest(page.name), tempfile.TemporaryDirectory() as folder:
                self.check(page(), Path(folder))

    def check(self, page: Page, folder: Path) -> None:
        prompts = folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS))
        arguments = ["--quick", "--prompts", prompts, "--program", PROGRAM, "--model", f"*={model('tiny-llama')}",
                     "--model", f"smollm2-draft={model('tiny-llama-q8_0')}", "--output", folder / "raw"]  # fmt: skip
        if page.name == "speculation":
            server = folder / "llama-server"
            server.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B {shlex.quote(str(FAKE_SERVER))} "$@"\n')
            server.chmod(0o755)
            arguments += ["--llama-server", server]
        log = StringIO()
        server_state = mock.patch.dict(os.environ, FAKE_FOLDER=str(folder))
        with redirect_stdout(log), redirect_stderr(log), server_state:
            page.main(list(map(str, arguments)))
        text = (folder / f"{page.name}.md").read_text()
        self.assertNotIn("nan", text)
        for heading in page.sections:
            below = text.partition(f"\n{heading}")[2].partition("\n## ")[0]
            self.assertRegex(below, r"\n\|---[^\n]*\n\| ", f"{heading}: no table\n{text}")
        for picture in re.findall(r"\]\(([^)]*\.svg)\)", text):
            self.assertTrue((folder / "raw" / Path(picture).name).exists(), picture)


if __name__ == "__main__":
    unittest.main()
