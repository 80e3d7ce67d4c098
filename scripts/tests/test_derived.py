"""The derived models: reproducible to the byte, and what their names promise."""

import contextlib
import io
import os
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import gguf
import numpy as np
from forerun_models import catalog, deep, tiny, tiny_specs, vocabulary, wide
from forerun_models.cache import models_dir
from forerun_models.errors import SetupError
from forerun_models.gguf_copy import Source


def _spec(name: str) -> tiny_specs.TinySpec:
    return next(s for s in tiny_specs.tiny_specs() if s.name == name)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tiny(self, spec: tiny_specs.TinySpec, name: str = "a") -> Path:
        return tiny.write_tiny(spec, self.folder / f"{name}.gguf")[0]


class TestTiny(FolderTest):
    def test_two_runs_give_the_same_bytes(self):
        for name in ("tiny-llama-bias", "tiny-qwen2-untied", "tiny-qwen3", "tiny-gemma3"):
            a, b = self.tiny(_spec(name), "a"), self.tiny(_spec(name), "b")
            self.assertEqual(a.read_bytes(), b.read_bytes(), name)

    def test_another_seed_gives_other_weights(self):
        a, b = self.tiny(_spec("tiny-qwen3"), "a"), self.tiny(replace(_spec("tiny-qwen3"), seed=2), "b")
        name = "blk.0.ffn_up.weight"
        self.assertFalse(np.allclose(Source(a).floats(name), Source(b).floats(name)))

    def test_split_model_has_its_parts(self):
        spec = _spec("tiny-llama-split")
        paths = tiny.write_tiny(spec, self.folder / "s.gguf")
        self.assertEqual([p.name for p in paths], [f"s-{i:05d}-of-00003.gguf" for i in (1, 2, 3)])
        readers = [gguf.GGUFReader(p) for p in paths]
        self.assertEqual([r.fields["split.no"].contents() for r in readers], [0, 1, 2])
        whole = Source(self.tiny(replace(spec, n_parts=1)))
        names = [t.name for r in readers for t in r.tensors]
        self.assertEqual(names, list(whole.tensors))
        self.assertEqual(readers[0].fields["split.tensors.count"].contents(), len(names))

    def test_names_are_unique_and_everything_is_covered(self):
        specs = tiny_specs.tiny_specs()
        names = list(catalog.catalog())
        self.assertEqual(len(set(names)), len(names))
        others = (
            "gemma gemma2 phi3 granite glm4 smollm3 exaone ernie4_5 internlm2 seed_oss chatglm xverse pangu-embedded "
            "qwen2vl qwen3vl minicpm mistral3 olmo2 exaone4 hunyuan-dense maincoder stablelm orion olmo starcoder2 "
            "codeshell jais2 nemotron arcee command-r cohere2"
        ).split()
        mixtures = {"qwen2moe", "qwen3moe", "olmoe", "granitemoe", "ernie4_5-moe", "glm4moe", "gpt-oss", "deepseek2", "llama4"}
        self.assertEqual({s.arch for s in specs}, {"llama", "qwen2", "qwen3", "gemma3", "gemma4", *others, *mixtures})
        self.assertEqual({s.head_size for s in specs if s.arch not in {*others, *mixtures}}, set(tiny_specs.HEAD_SIZES))
        for arch in ("llama", "qwen2", "qwen3", "gemma3"):
            mine = [s for s in specs if s.arch == arch]
            self.assertEqual({s.n_head == s.n_head_kv for s in mine}, {True, False}, arch)
            self.assertEqual({s.tied for s in mine}, {True, False}, arch)


class TestVocabulary(unittest.TestCase):
    def test_texts_are_unique_and_merges_can_happen(self):
        for v in (vocabulary.sentence_piece(True), vocabulary.gemma(), vocabulary.byte_pairs()):
            self.assertEqual(len(set(v.texts)), len(v.texts))
            self.assertEqual(len(v.types), len(v.texts))
        known = set(vocabulary.byte_pairs().texts)
        for merge in vocabulary.byte_pairs().merges:
            left, right = merge.split(" ")
            for part in (left, right, left + right):
                self.assertIn(part.encode(), known, merge)


class TestDeep(FolderTest):
    def test_plan(self):
        layers = deep.plan_layers(30, 1)
        self.assertEqual([x.source for x in layers if not x.is_planted()], list(range(30)))
        self.assertEqual([x.source for x in layers], sorted(x.source for x in layers))
        planted = [x for x in layers if x.is_planted()]
        self.assertTrue(all(0.01 <= f <= 0.05 for x in planted for f in (x.attn_factor, x.mlp_factor)))
        self.assertTrue(60 <= len(planted) <= 120)
        self.assertEqual(layers, deep.plan_layers(30, 1))
        self.assertNotEqual(layers, deep.plan_layers(30, 2))

    def test_file_says_where_the_scaled_copies_are(self):
        source = self.tiny(_spec("tiny-llama"), "source")
        for name in ("a", "b"):
            deep.make_deep(source, self.folder / f"{name}.gguf", seed=3)
        self.assertEqual((self.folder / "a.gguf").read_bytes(), (self.folder / "b.gguf").read_bytes())

        original, model = Source(source), Source(self.folder / "a.gguf")
        blocks, factors = model.value("forerun.planted_blocks"), model.value("forerun.planted_factors")
        layers = deep.plan_layers(4, 3)
        self.assertEqual(model.arch_value("block_count"), len(layers))
        self.assertEqual(len(blocks), 2 * (len(layers) - 4))
        for block, factor in zip(blocks, factors):
            output = "ffn_down" if block % 2 else "attn_output"
            copied = model.floats(f"blk.{block // 2}.{output}.weight")
            expected = original.floats(f"blk.{layers[block // 2].source}.{output}.weight") * factor
            np.testing.assert_allclose(copied, expected, atol=np.abs(expected).max() / 200)


class TestWide(FolderTest):
    def test_logits_do_not_change(self):
        source = self.tiny(_spec("tiny-llama"))
        old = wide.source_shape(Source(source))
        new = wide.widened(old, 384, 6)
        self.assertEqual((new.n_head, new.n_head_kv), (6, 2))
        target = self.folder / "wide.gguf"
        wide.make_wide(source, target, new, "f16")
        tokens = [1, 40, 300, 41, 350, 7, 7, 290]
        before, after = _logits(Source(source), tokens), _logits(Source(target), tokens)
        self.assertGreater(before.std(), 1)
        np.testing.assert_allclose(after, before, atol=0.02)  # weights rounded to F16

    def test_shapes_have_about_the_size_asked_for(self):
        smollm2 = wide.Shape(576, 30, 1536, 9, 3, 64, 49152)
        for n_params in (1e9, 3e9, 8e9):
            shape = wide.shape_for(smollm2, n_params)
            self.assertLess(abs(shape.n_params() / n_params - 1), 0.05)
            self.assertEqual(shape.n_head, 3 * shape.n_head_kv)

    def test_widths_that_do_not_suit_are_refused(self):
        smollm2 = wide.Shape(576, 30, 1536, 9, 3, 64, 49152)
        for width, n_layer in ((1000, 32), (384, 32), (768, 20)):
            with self.assertRaises(SetupError):
                wide.widened(smollm2, width, n_layer)


class TestCatalog(FolderTest):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder)}))

    def make(self, *names: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            catalog.make_models(list(names))
        return out.getvalue()

    def test_nothing_is_made_twice(self):
        self.assertIn("tiny-qwen3", self.make("tiny-qwen3"))
        self.assertEqual(self.make("tiny-qwen3"), "")

    def test_a_damaged_file_and_a_changed_recipe_are_made_again(self):
        self.make("tiny-qwen3")
        path = models_dir() / "tiny-qwen3.gguf"
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        self.make("tiny-qwen3")
        self.assertEqual(path.read_bytes(), whole)
        with mock.patch.object(catalog, "_recipe", lambda *_, code: "another"):
            self.assertIn("tiny-qwen3", self.make("tiny-qwen3"))

    def test_unknown_names_and_a_missing_tool_are_explained(self):
        with self.assertRaisesRegex(SetupError, "no derived model"):
            self.make("tiny-nothing")
        with mock.patch.dict(os.environ, {"FORERUN_REQUANTIZE": "/nonexistent"}):
            with self.assertRaisesRegex(SetupError, "build it with 'make'"):
                self.make("tiny-llama-q4_k")


def _logits(model: Source, tokens: list[int]) -> np.ndarray:
    """A plain llama forward pass: (tokens, vocabulary)."""
    n_head, n_kv = model.arch_value("attention.head_count"), model.arch_value("attention.head_count_kv")
    size, eps = model.arch_value("rope.dimension_count"), model.arch_value("attention.layer_norm_rms_epsilon")
    n = len(tokens)
    angles = np.arange(n)[:, None] * model.arch_value("rope.freq_base") ** (-np.arange(0, size, 2) / size)
    turn = np.exp(1j * angles)[:, None, :]  # (tokens, 1, size / 2)

    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * model.floats(name)

    def rotate(x):  # neighbouring pairs, as the llama architecture stores them
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
        return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)

    x = model.floats("token_embd.weight")[tokens]
    for i in range(model.arch_value("block_count")):
        w = {s: model.floats(f"blk.{i}.{s}.weight") for s in
             ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")}  # fmt: skip
        h = norm(x, f"blk.{i}.attn_norm.weight")
        q = rotate((h @ w["attn_q"].T).reshape(n, n_head, size))
        k = rotate((h @ w["attn_k"].T).reshape(n, n_kv, size)).repeat(n_head // n_kv, 1)
        v = (h @ w["attn_v"].T).reshape(n, n_kv, size).repeat(n_head // n_kv, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(size) + np.triu(np.full((n, n), -np.inf), 1)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", weights, v).reshape(n, -1) @ w["attn_output"].T
        h = norm(x, f"blk.{i}.ffn_norm.weight")
        gate = h @ w["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w["ffn_up"].T)) @ w["ffn_down"].T
    return norm(x, "output_norm.weight") @ model.floats("token_embd.weight").T


if __name__ == "__main__":
    unittest.main()
