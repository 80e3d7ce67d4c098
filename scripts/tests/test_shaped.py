"""The models of a big one's shape: right sizes, sane weights, made from numpy and gguf alone."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import gguf
import numpy as np
from forerun_models import catalog, shaped
from forerun_models.gguf_copy import Source

# Few layers and tokens; rows of 256 and 512, and more weights than one stream gives.
_SMALL = shaped.Shape("small", "qwen2", 1, 256, 512, 4, 2, 64, 5000, 512, 10000.0, tied=False, qkv_bias=True)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, shape: shaped.Shape, weight_type: str, name: str = "a") -> Path:
        path = self.folder / f"{name}.gguf"
        shaped.write_shaped(shaped.ShapedSpec("random-small", shape, weight_type), path)
        return path


class TestWeights(FolderTest):
    def test_every_type_has_mean_0_and_the_spread_of_its_row_length(self):
        for weight_type in shaped.TYPES:
            model = Source(self.write(_SMALL, weight_type))
            for name in ("token_embd", "output", "blk.0.attn_k", "blk.0.ffn_down"):
                with self.subTest(type=weight_type, tensor=name):
                    weights = model.floats(f"{name}.weight") * np.sqrt(model.tensors[f"{name}.weight"].shape[0])
                    self.assertAlmostEqual(weights.std(), 1, delta=0.05)
                    # The means of rows and columns are those of independent weights, or nearly: the
                    # numbers of a Q4_0 block have a mean, whose sign is random (expected: 1.17).
                    for axis in (0, 1):
                        self.assertLess(weights.mean(axis).std() * np.sqrt(weights.shape[axis]), 1.35)
                    self.assertLess(abs(weights.mean()) * np.sqrt(weights.size), 5)

    def test_no_two_rows_are_equal(self):
        for weight_type in ("f16", "q4_k"):
            weights = Source(self.write(_SMALL, weight_type)).floats("token_embd.weight")
            self.assertEqual(len(np.unique(weights, axis=0)), len(weights))

    def test_norms_are_ones_and_biases_small(self):
        model = Source(self.write(_SMALL, "q4_0"))
        for name in ("blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"):
            self.assertTrue((model.floats(name) == 1).all(), name)
        for name in ("attn_q", "attn_k", "attn_v"):
            self.assertAlmostEqual(model.floats(f"blk.0.{name}.bias").std(), 0.1, delta=0.03)

    def test_two_runs_give_the_same_bytes(self):
        for weight_type in ("bf16", "q6_k"):
            a, b = (self.write(_SMALL, weight_type, name) for name in "ab")
            self.assertEqual(a.read_bytes(), b.read_bytes())

    def test_the_file_has_exactly_its_tensors(self):
        path = self.write(replace(_SMALL, n_vocab=4999), "q4_1")
        last = gguf.GGUFReader(path).tensors[-1]
        self.assertEqual(last.data_offset + last.n_bytes, path.stat().st_size)


class TestTypes(FolderTest):
    def types(self, shape: shaped.Shape, weight_type: str) -> dict[str, str]:
        model = Source(self.write(shape, weight_type))
        return {name: t.tensor_type.name for name, t in model.tensors.items() if len(t.shape) > 1}

    def test_head_has_six_bits_where_the_rest_has_fewer(self):
        for weight_type, head in (("q4_0", "Q6_K"), ("q4_k", "Q6_K"), ("q5_0", "Q6_K"), ("q8_0", "Q8_0"), ("f16", "F16")):
            found = self.types(_SMALL, weight_type)
            self.assertEqual(found.pop("output.weight"), head)
            self.assertEqual(set(found.values()), {weight_type.upper()})
            found = self.types(replace(_SMALL, tied=True), weight_type)
            self.assertEqual(found.pop("token_embd.weight"), head)
            self.assertNotIn("output.weight", found)

    def test_rows_that_do_not_suit_have_a_type_of_smaller_blocks(self):
        narrow = replace(_SMALL, width=288)
        found = self.types(narrow, "q4_k")
        self.assertEqual(found["blk.0.attn_q.weight"], "Q5_0")
        self.assertEqual(found["blk.0.ffn_down.weight"], "Q4_K")
        self.assertEqual(found["output.weight"], "Q8_0")
        self.assertEqual(self.types(narrow, "q6_k")["blk.0.ffn_up.weight"], "Q8_0")


class TestNames(FolderTest):
    def test_shapes_have_their_models_size(self):
        sizes = {s.name: s.n_bytes() for s in shaped.shaped_specs()}
        whole = (("llama-8b", 8.03e9), ("llama-1b", 1.236e9), ("qwen2-1.5b", 1.544e9), ("smollm2-135m", 134.5e6))
        in_part = (("gemma4-e2b", 4.629e9), ("phi4-1.5b", 1.520e9), ("gemma2-1.5b", 1.524e9), ("qwen3-1.5b", 1.519e9))
        for shape, n_params in (*whole, *in_part):
            self.assertLess(abs(sizes[f"random-{shape}-f32"] / 4 / n_params - 1), 0.001, shape)
        self.assertEqual(len(sizes), len(shaped.SHAPES) * len(shaped.TYPES))

    def test_vocabularies_have_the_models_size(self):
        for shape in shaped.SHAPES.values():
            v = shaped._vocabulary(shape.n_vocab)
            self.assertEqual(len(set(v.texts)), shape.n_vocab)
            self.assertEqual(len(v.types), shape.n_vocab)
            self.assertLess(v.ids["eos"], shape.n_vocab)

    def test_they_are_made_by_name_only(self):
        known = catalog.catalog()
        for spec in shaped.shaped_specs():
            self.assertTrue(known[spec.name].only_by_name)
        small = shaped.ShapedSpec("random-small-q8_0", _SMALL, "q8_0")
        with (
            mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder)}),
            mock.patch.object(shaped, "shaped_specs", lambda: [small]),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            catalog.make_models([small.name])
        self.assertTrue((self.folder / "forerun" / "models" / "random-small-q8_0.gguf").exists())


class TestProgram(FolderTest):
    def run_program(self, *arguments) -> subprocess.CompletedProcess:
        """With numpy and gguf, and no other package."""
        packages = self.folder / "packages"
        packages.mkdir()
        for module in (np, gguf):
            source = Path(module.__file__).parent
            for name in (source.name, f"{source.name}.libs"):
                (packages / name).symlink_to(source.with_name(name))
        environment = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-S", shaped.__file__, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def test_needs_numpy_and_gguf_only(self):
        path = self.folder / "out.gguf"
        run = self.run_program("random-smollm2-135m-q4_0", path)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        model = Source(path)
        self.assertEqual(model.value("general.name"), "random-smollm2-135m-q4_0")
        self.assertEqual(model.tensors["token_embd.weight"].shape.tolist(), [576, 49152])

    def test_unknown_names_are_explained_and_leave_nothing(self):
        run = self.run_program("random-llama-9b-q4_0", self.folder / "out.gguf")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, "^forerun: no model is called .*llama-8b.*q4_k[^\n]*\n$")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["packages"])


if __name__ == "__main__":
    unittest.main()
