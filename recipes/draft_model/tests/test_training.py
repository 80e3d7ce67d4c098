"""Sampling, labels, loss, rounding, and going on where a run stopped. Skipped without PyTorch."""

import importlib.util
import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np
import tiny_teacher

if importlib.util.find_spec("torch"):
    import gguf
    import torch
    from draft_recipe import gguf_model, llama, loss, quantise, steps
    from draft_recipe.blocks import Block, Labeller, Labels, make_blocks
    from draft_recipe.chat import Batch, ChatIds
    from draft_recipe.journal import Clock
    from draft_recipe.labels_file import load_labels, save_labels
    from draft_recipe.optimiser import orthogonal
    from draft_recipe.ragged import Ragged
    from draft_recipe.sampler import Sampler

    torch.set_num_threads(1)

_IDS = (tiny_teacher.TURN, tiny_teacher.ASSISTANT)


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
class TorchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.teacher = tiny_teacher.write_teacher(self.folder)
        source = gguf_model.open_model(self.teacher)
        self.shape = gguf_model.model_shape(source)
        plain = {n: torch.from_numpy(np.array(a)) for n, a in gguf_model.model_weights(source, self.shape).items()}
        self.weights = llama.fused(plain, torch.float32)

    def logits(self, tokens) -> "torch.Tensor":
        row = torch.tensor(np.asarray(tokens, np.int64))[None]
        hidden = llama.trunk(self.shape, self.weights, row, llama.rope_turns(self.shape, row.shape[1], "cpu"))
        return (hidden @ self.weights["token_embd"].T)[0]


class TestSampler(TorchTest):
    def test_rows_of_different_lengths_get_the_most_probable_tokens(self):
        rng = np.random.default_rng(1)
        prompts = [rng.integers(70, 300, n).astype(np.uint16) for n in (1, 5, 12, 30)]
        sampler = Sampler(self.shape, self.weights, ChatIds(*_IDS), 4, 48, [16, 40])
        for _ in range(2):  # nothing of the first batch is left in the second
            rows = sampler.generate(Batch(prompts, np.zeros(4), np.zeros(4)), 8)
            for prompt, row in zip(prompts, rows):
                self.assertEqual(row[: len(prompt)].tolist(), prompt.tolist())
                best = self.logits(row).argmax(-1)
                self.assertEqual(row[len(prompt) :].tolist(), best[len(prompt) - 1 : -1].tolist())

    def test_each_turn_has_its_own_temperature(self):
        asked = np.array([*tiny_teacher.HEAD, 80, 81], np.uint16)
        answered = np.array([*asked, *tiny_teacher.TAIL], np.uint16)
        sampler = Sampler(self.shape, self.weights, ChatIds(*_IDS), 60, 32, [32])
        rows = sampler.generate(Batch([asked] * 30 + [answered] * 30, np.zeros(60), np.full(60, 5.0)), 4)
        self.assertGreater(len({tuple(row) for row in rows[:30]}), 20)
        self.assertEqual(len({tuple(row) for row in rows[30:]}), 1)

    def test_draws_follow_the_chances(self):
        prompt = np.array([80, 90], np.uint16)
        sampler = Sampler(self.shape, self.weights, ChatIds(*_IDS), 4000, 16, [16])
        torch.manual_seed(1)
        drawn = [row[2] for row in sampler.generate(Batch([prompt] * 4000, np.ones(4000), np.ones(4000)), 1)]
        chances = self.logits(prompt)[-1].softmax(-1).numpy()
        found = np.bincount(drawn, minlength=len(chances)) / 4000
        self.assertLess(np.abs(found - chances).sum() / 2, 0.12)


class TestLoss(TorchTest):
    def setUp(self):
        super().setUp()
        torch.manual_seed(2)
        self.hidden, self.embedding = torch.randn(7, 8), 0.3 * torch.randn(50, 8)
        p = torch.randn(7, 50).mul(2).softmax(-1)
        best = p.topk(5, -1)
        self.labels = Labels(best.indices.to(torch.int16), best.values.half())
        self.label_weights = torch.rand(7) + 0.5

    def test_loss_and_gradients_are_those_of_the_short_lists_divergence(self):
        hidden, embedding = self.hidden.clone().requires_grad_(), self.embedding.clone().requires_grad_()
        q = (hidden @ embedding.T).softmax(-1).gather(-1, self.labels.token_ids())
        p = loss.targets(self.labels, 0.3)
        with_rest = lambda x: torch.cat([x, 1 - x.sum(-1, keepdim=True)], -1)
        expected = (self.label_weights * (with_rest(p) * (with_rest(p) / with_rest(q)).log()).sum(-1)).sum()
        expected.backward()
        gradient = torch.zeros_like(self.embedding)
        found = loss.head_loss(self.hidden, self.embedding, self.labels, self.label_weights, gradient, 0.3, at_once=3)
        torch.testing.assert_close(found.loss, expected.detach(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found.hidden_grad, hidden.grad, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(gradient, embedding.grad, rtol=1e-3, atol=1e-4)

    def test_tokens_beyond_32767_survive_their_storage(self):
        ids = torch.tensor([[0, 32767, 32768, 49151, 65535]])
        self.assertEqual(Labels(ids.to(torch.int16), ids.half()).token_ids().tolist(), ids.tolist())


class TestRounding(TorchTest):
    def test_training_rounds_as_the_file_does(self):
        x = torch.randn(64, 96, generator=torch.Generator().manual_seed(1))
        x[3] = 0
        kind = gguf_model.WEIGHT_TYPE
        stored = gguf.quants.dequantize(gguf.quants.quantize(x.numpy(), kind), kind)
        np.testing.assert_allclose(quantise.rounded(x).numpy(), stored, rtol=1e-6)

    def test_rounding_twice_changes_nothing_more(self):
        once = quantise.rounded(torch.randn(8, 64))
        torch.testing.assert_close(quantise.rounded(once), once, rtol=2e-3, atol=1e-6)


class TestOptimiser(TorchTest):
    def test_singular_values_become_about_equal(self):
        x = torch.randn(2, 24, 48, generator=torch.Generator().manual_seed(3))
        values = torch.linalg.svdvals(orthogonal(x))
        self.assertTrue(((values > 0.5) & (values < 1.4)).all())
        torch.testing.assert_close(orthogonal(x.mT), orthogonal(x).mT, rtol=1e-3, atol=1e-3)


class TestBlocks(TorchTest):
    def blocks(self) -> list["Block"]:
        rng = np.random.default_rng(4)
        rows = [
            [*tiny_teacher.HEAD, *rng.integers(70, 300, n), *tiny_teacher.TAIL, *rng.integers(70, 300, 9)]
            for n in range(3, 9)
        ]
        kinds = {"short": replace(steps.SMALL.blocks["short"], n_rows=4, other_share=0.2)}
        return make_blocks({"short": Ragged.of(rows)}, ChatIds(*_IDS), torch.device("cpu"), 1, kinds)

    def test_answers_are_learnt_whole_and_with_more_weight(self):
        for block in self.blocks():
            n_rows, n_columns = block.tokens.shape
            heavy = block.positions[block.weights == 1.0]
            # The nine tokens after the header, and the header's own last one.
            self.assertEqual(torch.bincount(heavy // n_columns, minlength=n_rows).tolist(), [10] * n_rows)

    def test_labels_are_the_teachers_most_probable_tokens(self):
        block = self.blocks()[0]
        Labeller(self.shape, self.weights, 64, positions_at_once=5).label(block)
        row, column = divmod(int(block.positions[-1]), block.tokens.shape[1])
        chances = self.logits(block.tokens[row, : column + 1])[-1].softmax(-1)
        self.assertEqual(int(block.labels.token_ids()[-1, 0]), int(chances.argmax()))
        self.assertAlmostEqual(float(block.labels.chances[-1, 0]), float(chances.max()), delta=1e-3)

    def test_labels_are_kept_for_these_blocks_only(self):
        blocks, again = self.blocks(), self.blocks()
        labeller = Labeller(self.shape, self.weights, 64)
        labeller.label(blocks[1])
        self.assertEqual(save_labels(self.folder, blocks, Clock(60)), 1)
        self.assertEqual(load_labels(self.folder, again), 1)
        self.assertIsNone(again[0].labels)
        self.assertTrue((again[1].labels.tokens == blocks[1].labels.tokens).all())
        self.assertEqual(load_labels(self.folder, again[:1]), 0)


class TestRuns(TorchTest):
    def recipe(self, work: str, earlier: Path | None = None) -> "steps.Recipe":
        tiny_teacher.write_data(self.folder)
        rows = tuple(replace(kind, n_rows=16, n_new=40) for kind in steps.SMALL.rows)
        train = replace(steps.SMALL.train, other_rate=3e-3, matrix_rate=5e-3)
        sizes = replace(steps.SMALL, rows=rows, student=(2, 64, 96, 2, 1, 32), train=train)
        places = steps.Places(
            self.teacher,
            self.folder / "prompts.npz",
            self.folder / "measure.npz",
            self.folder / work,
            self.folder / "out",
            earlier,
        )
        return steps.Recipe(places, sizes, seed=1)

    def events(self, work: str, name: str) -> list[dict]:
        lines = map(json.loads, (self.folder / work / "log.jsonl").read_text().splitlines())
        return [line for line in lines if line["event"] == name]

    def test_two_runs_write_a_model(self):
        self.recipe("work").run(Clock(1), 1, 1 / 60)
        rows = (self.folder / "work/rows-short.npz").read_bytes()
        first = self.recipe("work").training()
        self.assertGreater(first.n_steps, 0)
        self.recipe("work").run(Clock(1), 0, 1 / 60)
        self.assertEqual((self.folder / "work/rows-short.npz").read_bytes(), rows)
        self.assertGreater(self.recipe("work").training().n_steps, first.n_steps)
        second = self.events("work", "blocks")[1]
        self.assertEqual(second["steps_before"], first.n_steps)
        self.assertGreater(second["labelled"], 0)
        last = self.events("work", "agreement")[-1]
        [of_file] = self.events("work", "agreement of the file")
        self.assertAlmostEqual(of_file["all"], last["all"], delta=0.05)
        self.assertTrue((self.folder / "out/smollm2-draft.gguf").exists())
        self.assertTrue((self.folder / "out/log.jsonl").exists())

    def test_the_student_learns_what_the_teacher_does(self):
        recipe = self.recipe("work")
        recipe.sample(1)
        training = recipe.training(256)
        blocks = recipe.blocks(ChatIds(*_IDS))
        labeller = Labeller(self.shape, self.weights, 256)
        losses = []
        for i in range(80):
            weight, total, _ = training.step(blocks, labeller, i / 80).tolist()
            losses.append(total / weight)
        self.assertLess(np.mean(losses[-5:]), 0.75 * np.mean(losses[:5]))

    def test_weights_brought_back_are_gone_on_from_where_the_rest_was_lost(self):
        self.recipe("work").run(Clock(1), 1, 1 / 60)
        there, here = self.recipe("work").training(), self.recipe("other", self.folder / "out").training()
        for name, p in there.params.items():
            torch.testing.assert_close(here.params[name], p, rtol=1e-3, atol=1e-4)
        self.assertEqual(here.n_steps, 0)


if __name__ == "__main__":
    unittest.main()
