"""Prompts for the teacher, put together from tokens: no tokenizer is needed where they are drawn.

Many turns are left open, so that the teacher itself goes on as the user and then answers.
"""

from pathlib import Path

import numpy as np

from .chat import Batch, chat_ids, first_answer
from .ragged import Ragged

_ANSWER_HEATS, _ANSWER_SHARES = (0.0, 0.4, 0.7, 1.0), (0.5, 0.2, 0.2, 0.1)
_LONGEST_TURN = 120  # tokens of a prompt for short rows


class PromptBook:
    """The file that the recipe's first step wrote."""

    def __init__(self, path: Path):
        with np.load(path) as arrays:
            self._lists = {
                n.removesuffix("_lengths"): Ragged.unpack(arrays, n.removesuffix("_lengths"))
                for n in arrays
                if n.endswith("_lengths")
            }
            self._books, self._spaced = arrays["books"], arrays["spaced"]
        self.head, self.tail, self._line, self._gap = (self._lists["chat"][i] for i in range(4))
        self.ids = chat_ids(self.head, self.tail)
        self.articles: list[np.ndarray] = []  # that the teacher wrote, once it did

    def short(self, n: int, rng: np.random.Generator) -> Batch:
        makers = (self._nothing, self._turn, self._open_turn, self._code, self._passage)
        return self._batch(n, rng, makers, (0.3, 0.35, 0.22, 0.06, 0.07))

    def medium(self, n: int, rng: np.random.Generator) -> Batch:
        """Half of them ask for articles, which are to differ: those answers are drawn warm."""
        batch = self._batch(n, rng, (self._article, self._turn, self._open_turn), (0.5, 0.35, 0.15))
        wants_article = np.array([p[-len(self.tail) :].tolist() != self.tail.tolist() for p in batch.prompts])
        return Batch(
            batch.prompts,
            np.where(wants_article, np.maximum(batch.answer_heat, 0.7), batch.answer_heat),
            batch.other_heat,
        )

    def to_summarise(self, n: int, n_tokens: int, rng: np.random.Generator) -> Batch:
        """Texts of `n_tokens` after what is asked for."""
        return self._batch(n, rng, (lambda r: self._asked_before(n_tokens, r),), (1,))

    def to_look_up(self, n: int, n_tokens: int, rng: np.random.Generator) -> Batch:
        """Texts of `n_tokens` before a question, or its beginning."""
        return self._batch(n, rng, (lambda r: self._asked_after(n_tokens, r),), (1,))

    def through_answer(self, row: np.ndarray) -> np.ndarray:
        """The row up to the end of its first answer."""
        return row[: first_answer(row, self.tail, self.ids).stop + 1]

    def keep_articles(self, rows: list[np.ndarray], shortest: int = 150) -> None:
        """Takes the first answers of `rows` as texts to ask about."""
        for row in rows:
            answer = row[first_answer(row, self.tail, self.ids)]
            if len(answer) >= shortest:
                self.articles.append(answer)

    def _batch(self, n: int, rng, makers, shares) -> Batch:
        prompts = [makers[i](rng) for i in rng.choice(len(makers), n, p=np.array(shares) / sum(shares))]
        answer_heat = rng.choice(_ANSWER_HEATS, n, p=_ANSWER_SHARES)
        return Batch(prompts, answer_heat, rng.choice([0.8, 0.9, 1.0], n))

    def _any(self, name: str, rng) -> np.ndarray:
        lists = self._lists[name]
        return lists[rng.integers(len(lists))]

    def _asked(self, *parts: np.ndarray) -> np.ndarray:
        return np.concatenate([self.head, *parts, self.tail])

    def _nothing(self, rng) -> np.ndarray:
        return self.head

    def _turn(self, rng) -> np.ndarray:
        return self._asked(self._any("turns", rng)[:_LONGEST_TURN])

    def _open_turn(self, rng) -> np.ndarray:
        turn = self._any("turns", rng)[:_LONGEST_TURN]
        return np.concatenate([self.head, turn[: rng.integers(1, max(2, len(turn)))]])

    def _code(self, rng) -> np.ndarray:
        return self._asked(self._any("ask_of_code", rng), self._gap, self._any("functions", rng)[: _LONGEST_TURN - 20])

    def _passage(self, rng) -> np.ndarray:
        return self._asked_before(int(rng.integers(40, _LONGEST_TURN - 20)), rng)

    def _article(self, rng) -> np.ndarray:
        index = rng.integers(len(self._lists["article_asks"]))
        start = self._lists["article_starts"][index]
        return np.concatenate([self._asked(self._lists["article_asks"][index]), start])

    def _asked_before(self, n_tokens: int, rng) -> np.ndarray:
        ask, text = self._any("ask_before", rng), self._text(n_tokens, rng)
        if rng.random() < 0.6:
            return self._asked(ask, self._after_space(text))
        return self._asked(ask, self._gap, text)

    def _asked_after(self, n_tokens: int, rng) -> np.ndarray:
        """The question stands alone on its line, and is often left to the teacher to finish."""
        ask, text = self._any("ask_after", rng), self._text(n_tokens, rng)
        if rng.random() < 0.7:
            return np.concatenate([self.head, text, self._line, ask[: rng.integers(1, 4)]])
        return self._asked(text, self._line, ask)

    def _text(self, n_tokens: int, rng) -> np.ndarray:
        """Articles of the teacher or paragraphs of a document, one after another, cut to length."""
        gap = self._gap if rng.random() < 0.4 else None
        parts: list[np.ndarray] = []
        source = self._article_parts if self.articles and rng.random() < 0.7 else self._paragraphs
        while sum(map(len, parts)) < n_tokens + 40:
            for part in source(rng):
                parts += [part] if not parts else ([gap, part] if gap is not None else [self._after_space(part)])
        text = np.concatenate(parts)
        begin = int(rng.integers(0, 40)) if rng.random() < 0.3 else 0  # as if cut out of a longer one
        return text[begin : begin + n_tokens]

    def _article_parts(self, rng) -> list[np.ndarray]:
        return [self.articles[rng.integers(len(self.articles))]]

    def _paragraphs(self, rng) -> list[np.ndarray]:
        book = rng.integers(len(self._books) - 1)
        first = rng.integers(self._books[book], self._books[book + 1])
        return [self._lists["paragraphs"][i] for i in range(first, self._books[book + 1])]

    def _after_space(self, text: np.ndarray) -> np.ndarray:
        return np.concatenate([self._spaced[text[:1]], text[1:]])
