"""The student's file: the teacher's vocabulary, its own sizes, and the weights that it was given."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import tiny_teacher
from draft_recipe import gguf_model
from draft_recipe.shape import Shape
from forerun_models.errors import SetupError

_SHAPE = Shape(3, 64, 96, 2, 1, 32, 0)


class TestExport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.teacher = gguf_model.open_model(tiny_teacher.write_teacher(self.folder))
        big = gguf_model.model_shape(self.teacher)
        self.shape = Shape(*list(_SHAPE.__dict__.values())[:6], big.n_vocab, big.rope_base, big.eps)
        rng = np.random.default_rng(1)
        self.weights = {n: rng.standard_normal(s).astype(np.float32) for n, s in self.shape.sizes().items()}
        self.path = self.folder / "student.gguf"
        gguf_model.write_model(self.path, self.teacher, self.shape, self.weights, "a-draft")

    def test_sizes_and_weights_come_back(self):
        source = gguf_model.open_model(self.path)
        self.assertEqual(gguf_model.model_shape(source), self.shape)
        for name, found in gguf_model.model_weights(source, self.shape).items():
            given = self.weights[name]
            if name.endswith("norm"):
                self.assertTrue((found == given).all(), name)
                continue
            # A block's step is its largest number over 8; rounding errs by half of it, at its other end by one.
            blocks = given.reshape(-1, 32)
            error = np.abs(found - given).reshape(-1, 32).max(1) / np.abs(blocks).max(1)
            self.assertLess(error.max(), 0.13, name)
            self.assertLess(np.abs(found - given).mean(), 0.1, name)
            self.assertEqual(source.tensors["blk.1.ffn_up.weight"].tensor_type, gguf_model.WEIGHT_TYPE)

    def test_the_vocabulary_is_the_teachers(self):
        source = gguf_model.open_model(self.path)
        for key in (
            "tokenizer.ggml.tokens",
            "tokenizer.ggml.token_type",
            "tokenizer.ggml.model",
            "tokenizer.ggml.bos_token_id",
        ):
            self.assertEqual(source.value(key), self.teacher.value(key), key)
        self.assertEqual(source.value("general.name"), "a-draft")
        self.assertEqual(source.arch_value("context_length"), self.teacher.arch_value("context_length"))

    def test_what_is_no_model_is_refused_in_one_line(self):
        (self.folder / "text.gguf").write_text("no model at all")
        with self.assertRaisesRegex(SetupError, "GGUF"):
            gguf_model.open_model(self.folder / "text.gguf")


if __name__ == "__main__":
    unittest.main()
