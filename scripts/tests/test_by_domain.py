"""smollm2-domains: layers that are needed in texts of their own domain only."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from forerun_models import by_domain, catalog, tiny, tiny_specs
from forerun_models.errors import SetupError
from forerun_models.gguf_copy import Source
from forerun_models.llama_states import States
from forerun_models.texts_by_domain import Text, answered, prompts_by_domain

DOMAINS = ("talk", "sums", "tales")


def texts(n: int, seed: int) -> list[Text]:
    """Each domain has words of its own, and all prompts begin alike."""
    random = np.random.Generator(np.random.PCG64(seed))

    def words(domain: int, n_tokens: int) -> list[int]:
        return [int(t) for t in 300 + 25 * domain + random.integers(0, 25, n_tokens)]

    return [Text(name, [1, 290, 291, *words(d, 20)], words(d, 10)) for d, name in enumerate(DOMAINS) for _ in range(n)]


def make(source: Path, path: Path, of: list[Text]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        by_domain.make_by_domain(source, path, of)


class TestPlan(unittest.TestCase):
    def test_layers(self):
        layers = by_domain.plan_layers(30, 6)
        self.assertEqual(len(layers), 30 + 1 + 12 * 6)
        self.assertEqual([i for i, layer in enumerate(layers) if layer.tells], [2])
        self.assertEqual([layer.source for layer in layers if layer.decides], [2, 3, 4, *range(6, 29, 2), 29])
        own = [layer.source for layer in layers if layer.domain is None and not layer.tells]
        self.assertEqual(own, list(range(30)))
        for i, layer in enumerate(layers):
            if layer.domain == 0:
                following = layers[i : i + 6]
                self.assertEqual([x.domain for x in following], list(range(6)))
                self.assertEqual({x.source for x in following}, {layers[i - 1].source})
                self.assertAlmostEqual(layers[i - 1].factor + layer.factor, 1)


class TestModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        spec = replace(next(s for s in tiny_specs.tiny_specs() if s.name == "tiny-llama"), name="source")
        cls.source = tiny.write_tiny(spec, cls.folder / "source.gguf")[0]
        cls.made = cls.folder / "made.gguf"
        make(cls.source, cls.made, texts(6, 1))

    def states(self, text: Text, model: Path) -> list[np.ndarray]:
        """In front of each layer and behind the last, for each token of the answer; without the spare dimensions."""
        source, width = Source(model), Source(self.source).arch_value("embedding_length")
        states = States(source, source.arch_value("block_count")).of(text.prompt + text.answer)
        return [state[len(text.prompt) :, :width] for state in states]

    def test_two_runs_give_the_same_bytes(self):
        again = self.folder / "again.gguf"
        make(self.source, again, texts(6, 1))
        self.assertEqual(again.read_bytes(), self.made.read_bytes())

    def test_a_domain_needs_its_own_layers_and_no_others(self):
        of_layers = Source(self.made).value("forerun.layer_domains")
        self.assertEqual(Source(self.made).value("forerun.domains"), list(DOMAINS))
        for text in texts(6, 1)[::3]:
            states = self.states(text, self.made)
            for i, domain in enumerate(of_layers):
                change = np.abs(states[i + 1] - states[i]).mean() / np.abs(states[i]).mean()
                if domain >= 0 and DOMAINS[domain] == text.domain:
                    self.assertGreater(change, 1e-3)
                elif domain >= 0:
                    self.assertEqual(change, 0, f"a layer of {DOMAINS[domain]} in a text of {text.domain}")

    def test_its_states_are_nearly_those_of_the_original(self):
        for text in texts(6, 1)[::6]:
            made, original = self.states(text, self.made)[-1], self.states(text, self.source)[-1]
            cosine = (made * original).sum() / np.linalg.norm(made) / np.linalg.norm(original)
            self.assertGreater(cosine, 0.95)

    def test_planted_blocks_do_nothing(self):
        made = Source(self.made)
        blocks = made.value("forerun.planted_blocks")
        self.assertEqual(len(blocks), 1 + sum(d >= 0 for d in made.value("forerun.layer_domains")))
        for block in blocks:
            output = "ffn_down" if block % 2 else "attn_output"
            self.assertFalse(made.floats(f"blk.{block // 2}.{output}.weight").any())

    def test_no_domain_is_open_where_none_is_told(self):
        source = Source(self.made)
        states = States(source, source.arch_value("block_count"))
        del states._layers[by_domain.teller_place(4)]
        text = texts(6, 1)[0]
        found = states.of(text.prompt + text.answer)
        for i, domain in enumerate(source.value("forerun.layer_domains")[1:]):
            if domain >= 0:
                np.testing.assert_array_equal(found[i + 1], found[i])

    def test_too_few_domains_are_refused(self):
        with self.assertRaisesRegex(SetupError, "2 to"):
            by_domain.make_by_domain(self.source, self.folder / "x.gguf", texts(2, 1)[:2])


class TestTexts(unittest.TestCase):
    def write(self, *prompts: dict) -> Path:
        path = Path(self.enterContext(tempfile.TemporaryDirectory())) / "prompts.jsonl"
        path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
        return path

    def test_prompts_by_domain(self):
        path = self.write(*({"category": c, "turns": [f"{c}{i}", "more"]} for i in range(15) for c in "ab"))
        found = prompts_by_domain(path)
        self.assertEqual(found[:2], [("a", "a0"), ("a", "a1")])
        self.assertEqual([c for c, _ in found], ["a"] * 12 + ["b"] * 12)

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(SetupError, "line 1"):
            prompts_by_domain(self.write({"prompt": "hi"}))
        with self.assertRaisesRegex(SetupError, "1 categories"):
            prompts_by_domain(self.write({"category": "a", "turns": ["hi"]}))
        with mock.patch.dict(os.environ, {"FORERUN_PROGRAM": "/nonexistent"}):
            with self.assertRaisesRegex(SetupError, "build it with 'make'"):
                answered([("a", "hi")], Path("model.gguf"))

    def test_the_model_is_made_by_name_only_and_of_given_prompts(self):
        model = catalog.catalog()["smollm2-domains"]
        self.assertTrue(model.only_by_name)
        with self.assertRaisesRegex(SetupError, "--prompts"):
            model.make(Path("x.gguf"))
        other = catalog.catalog(catalog.Options(prompts=self.write({"category": "a", "turns": ["hi"]})))
        self.assertNotEqual(other["smollm2-domains"].recipe, model.recipe)


if __name__ == "__main__":
    unittest.main()
