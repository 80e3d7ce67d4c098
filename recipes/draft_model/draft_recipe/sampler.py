"""Continues many prompts at once with the teacher: keys and values kept, one captured graph a step.

Prompts of a batch end at the same column, so that every row writes the same column next;
rows with a shorter prompt begin with cells that nothing but they themselves look at.
Attention reads the first columns up to the next multiple in `extents`, one graph for each.
"""

import numpy as np
import torch
import torch.nn.functional as F

from . import llama
from .chat import Batch, ChatIds
from .llama import Weights
from .shape import Shape

_PREFILL_TOKENS = 1 << 16  # computed at once
_COLDEST = 0.01  # temperature under which the most probable token is taken


class Sampler:
    """Holds the cache of `n_rows` rows of `n_columns` tokens. Not to be shared between threads."""

    def __init__(self, shape: Shape, weights: Weights, ids: ChatIds, n_rows: int, n_columns: int, extents: list[int]):
        self._shape, self._w, self._ids = shape, weights, ids
        self.n_rows, self.n_columns = n_rows, n_columns
        self._extents = sorted({min(e, n_columns) for e in extents} | {n_columns})
        embedding = weights["token_embd"]
        self._device, dtype = embedding.device, embedding.dtype
        size = (shape.n_layer, n_rows, shape.n_head_kv, n_columns, shape.head_size)
        self._keys = torch.zeros(size, dtype=dtype, device=self._device)
        self._values = torch.zeros_like(self._keys)
        self._turns = llama.rope_turns(shape, n_columns, self._device)
        self._columns = torch.arange(n_columns, device=self._device)
        self._column = torch.ones(1, dtype=torch.long, device=self._device)  # of the last known token
        self._first = torch.zeros(n_rows, dtype=torch.long, device=self._device)  # column of the first token
        self._tokens = torch.zeros(n_rows, n_columns + 1, dtype=torch.long, device=self._device)
        self._answering = torch.zeros(n_rows, dtype=torch.bool, device=self._device)
        self._answer_heat = torch.ones(n_rows, device=self._device)
        self._other_heat = torch.ones(n_rows, device=self._device)
        self._graphs: dict[int, torch.cuda.CUDAGraph | None] = {}
        if self._device.type == "cuda":
            for extent in reversed(self._extents):  # the largest first: the others find room in its memory
                self._graphs[extent] = self._captured(extent)

    @property
    def has_graphs(self) -> bool:
        return bool(self._graphs) and all(self._graphs.values())

    @torch.no_grad()
    def generate(self, batch: Batch, n_new: int) -> list[np.ndarray]:
        """Returns each prompt with `n_new` tokens after it. At most n_rows prompts."""
        # What is computed at once has a multiple of 8 columns: attention wants its mask so.
        n_prompt = min(-(-(max(map(len, batch.prompts)) - 1) // 8) * 8 + 1, self.n_columns)
        n_new = min(n_new, self.n_columns - n_prompt)
        first = self._fill(batch, n_prompt)
        self._prefill(n_prompt)
        for column in range(n_prompt - 1, n_prompt - 1 + n_new):
            self._step_at(column)
        found = self._tokens[:, : n_prompt + n_new].to(torch.int32).cpu().numpy()
        return [found[row, first[row] :].astype(np.uint16) for row in range(len(batch.prompts))]

    def _fill(self, batch: Batch, n_prompt: int) -> np.ndarray:
        n = len(batch.prompts)
        tokens = np.zeros((self.n_rows, n_prompt), np.int64)
        first = np.zeros(self.n_rows, np.int64)
        for row, prompt in enumerate(batch.prompts):
            first[row] = n_prompt - len(prompt)
            tokens[row, first[row] :] = prompt
        self._tokens.zero_()
        self._tokens[:, :n_prompt] = torch.from_numpy(tokens).to(self._device)
        self._first.copy_(torch.from_numpy(first))
        self._answer_heat[:n] = torch.from_numpy(batch.answer_heat).float().to(self._device)
        self._other_heat[:n] = torch.from_numpy(batch.other_heat).float().to(self._device)
        self._answering.copy_(torch.from_numpy(self._in_answer(tokens)))
        self._column.fill_(n_prompt - 1)
        return first

    def _in_answer(self, tokens: np.ndarray) -> np.ndarray:
        """Whether the last turn that a row has begun is the assistant's."""
        begins = tokens[:, :-1] == self._ids.turn
        last = begins.shape[1] - 1 - begins[:, ::-1].argmax(1)
        return begins.any(1) & (tokens[np.arange(len(tokens)), last + 1] == self._ids.assistant)

    def _prefill(self, n_prompt: int) -> None:
        """Computes keys and values of all prompt columns but the last, which the first step computes."""
        n = n_prompt - 1
        if n == 0:
            return
        for begin in range(0, self.n_rows, max(1, _PREFILL_TOKENS // n)):
            rows = slice(begin, min(begin + max(1, _PREFILL_TOKENS // n), self.n_rows))
            self._prefill_rows(rows, n)

    def _prefill_rows(self, rows: slice, n: int) -> None:
        s, w, columns = self._shape, self._w, self._columns[:n]
        first = self._first[rows, None]
        turns = self._turns[(columns - first).clamp_min(0)]
        known = (columns <= columns[:, None]) & (columns >= first[:, None])  # (row, column, column seen)
        known |= columns == columns[:, None]  # or cells before the prompt would be no numbers
        mask = torch.zeros(known.shape, dtype=w["token_embd"].dtype, device=self._device)
        mask = mask.masked_fill_(~known, float("-inf"))[:, None]
        x = F.embedding(self._tokens[rows, :n], w["token_embd"])
        for i in range(s.n_layer):
            q, k, v = llama.queries_keys_values(s, x, w["attn_norm"][i], w["attn_qkv"][i], turns)
            self._keys[i, rows, :, :n], self._values[i, rows, :, :n] = k, v
            # Queries that share keys stand one below the other.
            grouped = (t.repeat_interleave(s.n_head // s.n_head_kv, 1) for t in (k, v))
            seen = F.scaled_dot_product_attention(q, *grouped, attn_mask=mask)
            x = x + F.linear(seen.transpose(1, 2).flatten(2), w["attn_output"][i])
            x = llama.feed_forward(s, x, w["ffn_norm"][i], w["ffn_gate_up"][i], w["ffn_down"][i])

    def _step_at(self, column: int) -> None:
        extent = next(e for e in self._extents if column < e)
        graph = self._graphs.get(extent)
        if graph:
            graph.replay()
        else:
            self._step(extent)

    def _step(self, extent: int) -> None:
        """Computes column `_column`, draws the token of the next one and moves on."""
        s, w = self._shape, self._w
        token = self._tokens.index_select(1, self._column)  # (row, 1)
        seen_columns = self._columns[:extent]
        known = (seen_columns <= self._column) & (seen_columns >= self._first[:, None])
        mask = torch.zeros(known.shape, dtype=w["token_embd"].dtype, device=self._device)
        mask = mask.masked_fill(~known, float("-inf"))[:, None, None]
        turns = self._turns[self._column - self._first][:, None]  # (row, 1, pair)
        x = F.embedding(token, w["token_embd"])
        for i in range(s.n_layer):
            q, k, v = llama.queries_keys_values(s, x, w["attn_norm"][i], w["attn_qkv"][i], turns)
            self._keys[i].index_copy_(2, self._column, k)
            self._values[i].index_copy_(2, self._column, v)
            # The queries of a group are rows of one product with the keys that they share.
            q = q.reshape(self.n_rows, s.n_head_kv, -1, s.head_size)
            keys, values = self._keys[i, :, :, :extent], self._values[i, :, :, :extent]
            seen = F.scaled_dot_product_attention(
                q, keys, values, attn_mask=mask.expand(-1, s.n_head_kv, q.shape[2], -1)
            )
            x = x + F.linear(seen.reshape(self.n_rows, 1, -1), w["attn_output"][i])
            x = llama.feed_forward(s, x, w["ffn_norm"][i], w["ffn_gate_up"][i], w["ffn_down"][i])
        logits = F.linear(llama.norm(x, w["output_norm"], s)[:, 0], w["token_embd"])
        self._draw(token[:, 0], logits)

    def _draw(self, token: torch.Tensor, logits: torch.Tensor) -> None:
        before = self._tokens.index_select(1, (self._column - 1).clamp_min(0))[:, 0]
        self._answering.copy_(torch.where(before == self._ids.turn, token == self._ids.assistant, self._answering))
        heat = torch.where(self._answering, self._answer_heat, self._other_heat)
        chances = torch.softmax(logits.float() / heat.clamp_min(_COLDEST)[:, None], -1)
        # The largest of chance / exponential number falls on each token as often as its chance says.
        drawn = (chances / torch.empty_like(chances).exponential_()).argmax(-1)
        # A row that is always to take the best token must not draw among near equals.
        chosen = torch.where(heat < _COLDEST, logits.argmax(-1), drawn)
        self._tokens.index_copy_(1, self._column + 1, chosen[:, None])
        self._column.add_(1)

    def _captured(self, extent: int):
        """A graph of one step, or None where this device cannot capture one."""
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.no_grad(), torch.cuda.stream(side):
                for _ in range(2):
                    self._column.fill_(1)
                    self._step(extent)
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            self._column.fill_(1)
            graph = torch.cuda.CUDAGraph()
            pool = next((g.pool() for g in self._graphs.values() if g), None)
            with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
                self._step(extent)
            return graph
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            print(f"no graph for {extent} columns, running without it: {str(error).splitlines()[0]}", flush=True)
            return None
