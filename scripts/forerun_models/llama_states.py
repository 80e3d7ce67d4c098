"""A plain llama forward pass, for what a model's states are like."""

import numpy as np

from .gguf_copy import Source

_MATRICES = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")


class States:
    """The residual stream in front of each layer, and behind the last of `n_layer`."""

    def __init__(self, model: Source, n_layer: int):
        self._embedding = model.floats("token_embd.weight")
        self._layers = [{m: model.floats(f"blk.{i}.{m}.weight") for m in _MATRICES} for i in range(n_layer)]
        self._n_head, self._n_kv = model.arch_value("attention.head_count"), model.arch_value("attention.head_count_kv")
        self._size, self._base = model.arch_value("rope.dimension_count"), model.arch_value("rope.freq_base")
        self._eps = model.arch_value("attention.layer_norm_rms_epsilon")

    def norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self._eps) * weight

    def of(self, tokens: list[int]) -> list[np.ndarray]:
        """Each (tokens, width)."""
        x = self._embedding[tokens]
        states = [x]
        for layer in self._layers:
            x = x + self._attention(self.norm(x, layer["attn_norm"]), layer)
            h = self.norm(x, layer["ffn_norm"])
            gate = h @ layer["ffn_gate"].T
            swish = gate * (1 + np.tanh(gate / 2)) / 2
            x = x + (swish * (h @ layer["ffn_up"].T)) @ layer["ffn_down"].T
            states.append(x)
        return states

    def _attention(self, h: np.ndarray, layer: dict[str, np.ndarray]) -> np.ndarray:
        n = len(h)
        angles = np.arange(n)[:, None] * self._base ** (-np.arange(0, self._size, 2) / self._size)
        turn = np.exp(1j * angles).astype(np.complex64)[:, None, :]  # (tokens, 1, size / 2)

        def rotate(x: np.ndarray) -> np.ndarray:  # neighbouring pairs, as the llama architecture stores them
            pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
            return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)

        def heads(name: str, n_head: int) -> np.ndarray:
            return (h @ layer[name].T).reshape(n, n_head, self._size)

        group = self._n_head // self._n_kv
        q = rotate(heads("attn_q", self._n_head)).transpose(1, 0, 2)
        k = rotate(heads("attn_k", self._n_kv)).repeat(group, 1).transpose(1, 2, 0)
        v = heads("attn_v", self._n_kv).repeat(group, 1).transpose(1, 0, 2)
        scores = q @ k / np.sqrt(self._size).astype(np.float32) + np.triu(np.full((n, n), -np.inf, np.float32), 1)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(1, 0, 2).reshape(n, -1) @ layer["attn_output"].T
