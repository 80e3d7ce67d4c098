"""Vectors of texts and the middle of a text, as clients of forerun serve ask for them."""

import base64
import math
import struct
import threading
import unittest

from program import model
from server import Server

SMOLLM2 = model("smollm2")
TEXTS = ["The cat sat on the mat.", "A cat is sitting on a mat.", "Interest rates rose by a quarter of a percent."]
MORE_TEXTS = [f"Text number {i} of many, with {i * i} in it." for i in range(40)]


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


class EmbeddingsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("-m", SMOLLM2, "-c", 256, "--parallel", 2, "--max-waiting", 8, "--pooling", "mean").__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()

    def embed(self, text: object, **fields) -> list:
        answer = self.server.post("/v1/embeddings", {"input": text} | fields)
        return [entry["embedding"] for entry in answer["data"]]

    def refused(self, path: str, body: dict) -> dict:
        status, answer, _ = self.server.ask("POST", path, body)
        self.assertEqual(status, 400, answer)
        return answer["error"]

    def test_of_openai(self):
        answer = self.server.post("/v1/embeddings", {"input": TEXTS, "model": "any"})
        self.assertEqual(answer["object"], "list")
        self.assertEqual([entry["index"] for entry in answer["data"]], [0, 1, 2])
        vectors = [entry["embedding"] for entry in answer["data"]]
        for vector in vectors:
            self.assertEqual(len(vector), 576)
            self.assertAlmostEqual(math.hypot(*vector), 1, 5)
        self.assertGreater(cosine(vectors[0], vectors[1]), cosine(vectors[0], vectors[2]))
        tokens = [self.server.post("/tokenize", {"content": text})["tokens"] for text in TEXTS]
        n_tokens = sum(map(len, tokens))
        self.assertEqual(answer["usage"], {"prompt_tokens": n_tokens, "total_tokens": n_tokens})
        # A text, its tokens, and one of many have the same vector.
        self.assertEqual(self.embed(TEXTS[1]), [vectors[1]])
        self.assertEqual(self.embed(tokens[1]), [vectors[1]])
        self.assertEqual(self.embed(tokens), vectors)

    def test_base64(self):
        (vector,) = self.embed(TEXTS[0])
        (text,) = self.embed(TEXTS[0], encoding_format="base64")
        # The numbers of the other form have just the digits of a float.
        self.assertEqual(base64.b64decode(text, validate=True), struct.pack(f"<{len(vector)}f", *vector))

    def test_of_llama_server(self):
        (vector,) = self.embed(TEXTS[0])
        for path in ("/embedding", "/embeddings"):
            for body in ({"content": TEXTS[0]}, {"input": TEXTS[0]}):
                self.assertEqual(self.server.post(path, body), [{"index": 0, "embedding": [vector]}])
        (raw,) = self.server.post("/embedding", {"content": TEXTS[0], "embd_normalize": -1})[0]["embedding"]
        self.assertGreater(math.hypot(*raw), 2)
        self.assertAlmostEqual(cosine(raw, vector), 1, 5)
        (largest,) = self.server.post("/embedding", {"content": TEXTS[0], "embd_normalize": 0})[0]["embedding"]
        self.assertAlmostEqual(max(map(abs, largest)), 32760, 1)

    def test_many_do_not_keep_others_away(self):
        alone = [self.embed(text)[0] for text in MORE_TEXTS[:4]]
        story = {"prompt": "Once upon a time", "n_predict": 40, "temperature": 0, "ignore_eos": True}
        expected = self.server.post("/completion", story)["content"]
        vectors: list = []
        thread = threading.Thread(target=lambda: vectors.extend(self.embed(MORE_TEXTS)))
        thread.start()
        together = self.server.post("/completion", story)["content"]
        thread.join()
        self.assertEqual(together, expected)
        self.assertEqual(len(vectors), len(MORE_TEXTS))
        self.assertEqual(vectors[:4], alone)

    def test_requests_that_make_no_sense(self):
        for body in ({}, {"input": ""}, {"input": []}, {"input": ["a", ""]}, {"input": 3}, {"input": [1.5]}, {"input": [10**9]},
                     {"input": "a", "encoding_format": "hex"}, {"input": "a", "encoding_format": 1},
                     {"input": "a", "dimensions": 64}, {"input": {"a": 1}}, {"content": ""},
                     {"input": "a", "embd_normalize": -2}):  # fmt: skip
            for path in ("/v1/embeddings", "/embedding"):
                with self.subTest(path=path, body=body):
                    self.assertEqual(self.refused(path, body)["type"], "invalid_request_error")
        self.assertEqual(len(self.embed("a", dimensions=576)), 1)
        self.assertIn("576", self.refused("/v1/embeddings", {"input": "a", "dimensions": 64})["message"])

    def test_texts_of_the_whole_context_and_no_longer_ones(self):
        token = self.server.post("/tokenize", {"content": " cat"})["tokens"][0]
        self.assertEqual(len(self.embed([token] * 256)[0]), 576)
        error = self.refused("/v1/embeddings", {"input": ["a", [token] * 257]})
        self.assertEqual(error["type"], "exceed_context_size_error")
        self.assertEqual((error["n_prompt_tokens"], error["n_ctx"]), (257, 256))

    def test_a_model_that_cannot_fill_gaps(self):
        status, answer, _ = self.server.ask("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"})
        self.assertEqual((status, answer["error"]["type"]), (501, "not_supported_error"))
        self.assertIn("Infill is not supported by this model", answer["error"]["message"])


class OtherPoolingsTest(unittest.TestCase):
    def test_vectors_of_tokens(self):
        with Server("-m", SMOLLM2, "-c", 256, "--pooling", "none") as server:
            n_tokens = len(server.post("/tokenize", {"content": TEXTS[0]})["tokens"])
            (entry,) = server.post("/embedding", {"content": TEXTS[0]})
            self.assertEqual(len(entry["embedding"]), n_tokens)
            status, answer, _ = server.ask("POST", "/v1/embeddings", {"input": TEXTS[0]})
            self.assertEqual(status, 400)
            self.assertIn("--pooling", answer["error"]["message"])
        first, last = entry["embedding"][0], entry["embedding"][-1]
        for flags, expected in ((["--pooling", "cls"], first), (["--pooling", "last"], last), ([], last)):
            with Server("-m", SMOLLM2, "-c", 256, *flags) as server:
                (vector,) = server.post("/embedding", {"content": TEXTS[0], "embd_normalize": -1})[0]["embedding"]
                self.assertEqual(vector, expected, flags)


class InfillTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("-m", model("tiny-qwen2-infill"), "-c", 256).__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.__exit__()

    def test_the_middle_of_a_text(self):
        request = {"input_prefix": "def add(a, b):\n", "input_suffix": "\n    return c", "prompt": "    c", "n_predict": 8,
                   "temperature": 0}  # fmt: skip
        answer = self.server.post("/infill", request)
        prompt = "<|fim_prefix|>def add(a, b):\n    c<|fim_suffix|>\n    return c<|fim_middle|>"
        self.assertEqual(answer["prompt"], prompt)
        # The same as a prompt with the marks in it.
        written = self.server.post("/completion", {"prompt": prompt, "n_predict": 8, "temperature": 0})
        self.assertEqual(answer["content"], written["content"])
        self.assertEqual(answer["tokens_evaluated"], written["tokens_evaluated"])
        events = list(self.server.stream("/infill", request))
        self.assertEqual("".join(event["content"] for event in events), answer["content"])
        with_files = self.server.post("/infill", request | {"input_extra": [{"filename": "sub.py", "text": "def sub"}]})
        self.assertIn("<|file_sep|>sub.py\ndef sub<|file_sep|>", with_files["prompt"])

    def test_long_texts_are_cut_far_from_the_gap(self):
        request = {"input_prefix": "a1 " * 500 + "near", "input_suffix": "far" + " b2" * 500, "n_predict": 32}
        answer = self.server.post("/infill", request)
        self.assertLessEqual(answer["tokens_evaluated"], 256 - 32)
        self.assertIn("near<|fim_suffix|>far", answer["prompt"])

    def test_requests_that_make_no_sense(self):
        for body in ({}, {"input_prefix": "a"}, {"input_suffix": "a"}, {"input_prefix": 1, "input_suffix": "a"},
                     {"input_prefix": "a", "input_suffix": "b", "input_extra": "c"},
                     {"input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "c"}]},
                     {"input_prefix": "a", "input_suffix": "b", "prompt": [1]},
                     {"input_prefix": "a", "input_suffix": "b", "prompt": "word " * 500}):  # fmt: skip
            with self.subTest(body=str(body)[:80]):
                self.assertEqual(self.server.ask("POST", "/infill", body)[0], 400)


if __name__ == "__main__":
    unittest.main()
