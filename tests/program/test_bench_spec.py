"""What `forerun bench spec` takes, and what it says of what it does not take."""

import json
import tempfile
import unittest
from pathlib import Path

from program import QUICK, ProgramTest, model

TINY = model("tiny-llama")


class BenchSpec(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.prompts = self.folder / "prompts.jsonl"
        self.write({"prompt": "Tell me a story."})

    def write(self, *prompts: dict) -> None:
        self.prompts.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))

    def command(self, *arguments) -> list:
        return ["bench", "spec", "-m", TINY, *QUICK, "--methods", "none", "--prompts", self.prompts, "-n", "4", *arguments]

    def test_a_prompt_that_is_too_long_is_named(self):
        long = "word " * 600
        for prompts, place in (
            ([{"prompt": "short"}, {"prompt": long}], "line 2: "),
            ([{"question_id": 81, "turns": [long]}], "line 1 (id 81): "),
            ([{"prompt": "short"}, {"id": "last", "turns": ["short", long]}], "line 2 (id last), turn 2: "),
        ):
            self.write(*prompts)
            message = self.fail_with(f"{self.prompts} {place}", *self.command("-c", "256"))
            self.assertRegex(message, r"\(-c \d+\).*, or leave it out\n")
            self.succeed(*self.command("-c", "1024"))

    def test_paths_of_a_method_may_have_any_characters(self):
        models = ["-m", model("tiny-llama-f32")]
        draft = self.folder / 'a:b,c="d\\.gguf'
        draft.symlink_to(model("tiny-llama-f16"))
        escaped = "".join("\\" + c if c in ':,"\\' else c for c in str(draft))
        quoted = "".join("\\" + c if c in '"\\' else c for c in str(draft))
        methods = [f"draft:model={escaped}:tokens=4", f'draft:model="{quoted}"', f'auto:layers=none:"draft-model={quoted}"']
        result = self.folder / "result.json"
        self.succeed(*self.command(*models, "--methods", ",".join(["none", *methods]), "--json", result))
        self.assertEqual(list(json.loads(result.read_text())["methods"]), ["none", *methods])
        for wrong, expected in (('pld:"ngram=3', "not closed"), ("pld\\", "ends with"), ("draft:model=a:b", "'b' is no option")):
            self.fail_with(expected, *self.command(*models, "--methods", wrong))


if __name__ == "__main__":
    unittest.main()
