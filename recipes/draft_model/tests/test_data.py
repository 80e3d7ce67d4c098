"""What the teacher is asked: collected, tokenised and put together without PyTorch."""

import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import tiny_teacher
from draft_recipe import compose, documents, prepare, texts
from draft_recipe.chat import ChatIds, first_answer, in_answers
from draft_recipe.ragged import Ragged
from forerun_models.errors import SetupError

# Tokenises as forerun prints it: one token a letter, 0 for the token between texts.
_LETTERS = """
import json, sys
ids = [t for part in sys.stdin.read().split("<|endoftext|>") for t in [0, *map(ord, part)]][1:]
print(json.dumps({"tokens": [{"id": i} for i in ids]}))
"""


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tokenizer(self) -> prepare.Tokenizer:
        program = self.folder / "letters"
        program.write_text(f"#!{sys.executable}\n{_LETTERS}")
        program.chmod(0o755)
        return prepare.Tokenizer(str(program), Path("model.gguf"))


class TestRagged(FolderTest):
    def test_lists_come_back_from_a_file(self):
        lists = [[1, 2, 3], [], [65535]]
        np.savez(self.folder / "a.npz", **Ragged.of(lists).pack("x"))
        with np.load(self.folder / "a.npz") as arrays:
            found = Ragged.unpack(arrays, "x")
        self.assertEqual([found[i].tolist() for i in range(len(found))], lists)


class TestPrepare(FolderTest):
    def test_each_text_has_its_own_tokens(self):
        found = self.tokenizer()(["ab", "", "c\n"])
        self.assertEqual([found[i].tolist() for i in range(3)], [[97, 98], [], [99, 10]])

    def test_a_missing_program_is_said_in_one_line(self):
        with self.assertRaisesRegex(SetupError, "make"):
            prepare.Tokenizer(str(self.folder / "none"), Path("model.gguf"))

    def test_measured_prompts_are_first_turns_in_the_chat_template(self):
        lines = [{"category": "qa", "turns": ["Why?", "And?"]}, {"category": "math", "turns": ["1+1"]}]
        (self.folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
        prepare.write_measure(self.folder / "measure.npz", self.tokenizer(), self.folder / "in.jsonl")
        with np.load(self.folder / "measure.npz") as arrays:
            self.assertEqual(arrays["categories"].tolist(), ["qa", "math"])
            prompt = "".join(map(chr, Ragged.unpack(arrays, "prompts")[0]))
        self.assertEqual(prompt, prepare.HEAD + "Why?" + prepare.TAIL)

    def test_more_turns_are_read_whatever_their_key(self):
        lines = [{"turns": ["a"]}, {"question": "b"}, {"instruction": "c"}, {"text": "no <|im_end|>"}, {"other": "d"}]
        (self.folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
        self.assertEqual(prepare.extra_turns(self.folder / "in.jsonl"), ["a", "b", "c"])

    def test_tokens_with_a_space_in_front(self):
        self.assertEqual(prepare.spaced_tokens(["a", "\u0120a", "b"]).tolist(), [1, 1, 2])


class TestTexts(unittest.TestCase):
    def test_the_same_seed_gives_the_same_turns_and_none_twice(self):
        one, two = (texts.turns(500, random.Random(7)) for _ in range(2))
        self.assertEqual(one, two)
        self.assertEqual(len(set(one)), len(one))
        self.assertGreater(len(one), 350)
        self.assertFalse([t for t in one if "{" in t or "<|" in t])

    def test_prose_is_told_from_tables(self):
        sentence = "This sentence is long enough to be counted as a paragraph of prose, and it ends as one does."
        self.assertEqual(
            documents.prose(f"x = 1\n\n{sentence[:45]}\n{sentence[45:]}\n\n1 2 3 4 | 5"), [" ".join(sentence.split())]
        )


class TestCompose(FolderTest):
    def setUp(self):
        super().setUp()
        tiny_teacher.write_data(self.folder)
        self.book = compose.PromptBook(self.folder / "prompts.npz")
        self.rng = np.random.default_rng(3)

    def test_every_prompt_begins_as_a_conversation(self):
        batches = [self.book.short(40, self.rng), self.book.medium(40, self.rng)]
        batches += [self.book.to_summarise(40, 100, self.rng), self.book.to_look_up(40, 100, self.rng)]
        for batch in batches:
            self.assertEqual(len(batch.prompts), len(batch.answer_heat))
            for prompt in batch.prompts:
                self.assertEqual(prompt[: len(tiny_teacher.HEAD)].tolist(), tiny_teacher.HEAD)

    def test_long_texts_have_the_length_asked_for(self):
        for make in (self.book.to_summarise, self.book.to_look_up):
            lengths = [len(p) for p in make(40, 200, self.rng).prompts]
            self.assertGreaterEqual(min(lengths), 200)
            self.assertLess(max(lengths), 230)

    def test_articles_are_first_answers_and_enter_long_texts(self):
        answer = [299] * 160
        row = np.array([*tiny_teacher.HEAD, 70, *tiny_teacher.TAIL, *answer, tiny_teacher.END, 1], np.uint16)
        self.book.keep_articles([row, row[:20]])
        self.assertEqual([a.tolist() for a in self.book.articles], [answer])
        self.assertEqual(self.book.through_answer(row).tolist(), row[:-1].tolist())
        found = [p for p in self.book.to_summarise(40, 150, self.rng).prompts if (p == 299).sum() > 140]
        self.assertGreater(len(found), 5)


class TestTurns(unittest.TestCase):
    def test_answers_are_found_among_other_turns(self):
        ids = ChatIds(1, 5)
        row = np.array([[1, 4, 9, 9, 2, 1, 5, 7, 8, 2, 1, 4, 9]])
        self.assertEqual(in_answers(row, ids).astype(int).tolist(), [[0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]])
        self.assertEqual(row[0, first_answer(row[0], np.array([2, 1, 5]), ids)].tolist(), [7, 8])
        self.assertEqual(first_answer(row[0, :6], np.array([2, 1, 5]), ids), slice(6, 6))


if __name__ == "__main__":
    unittest.main()
