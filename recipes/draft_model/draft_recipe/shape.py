"""The sizes of a llama model and the names of its tensors."""

from dataclasses import dataclass

LAYER_MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
LAYER_NORMS = ("attn_norm", "ffn_norm")


@dataclass(frozen=True)
class Shape:
    n_layer: int
    width: int
    n_ff: int
    n_head: int
    n_head_kv: int
    head_size: int
    n_vocab: int
    rope_base: float = 100000.0
    eps: float = 1e-5

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Of every tensor; matrices are (out, in)."""
        n, d, f = self.n_layer, self.width, self.n_ff
        q, kv = self.n_head * self.head_size, self.n_head_kv * self.head_size
        return {
            "token_embd": (self.n_vocab, d),
            "attn_norm": (n, d),
            "attn_q": (n, q, d),
            "attn_k": (n, kv, d),
            "attn_v": (n, kv, d),
            "attn_output": (n, d, q),
            "ffn_norm": (n, d),
            "ffn_gate": (n, f, d),
            "ffn_up": (n, f, d),
            "ffn_down": (n, d, f),
            "output_norm": (d,),
        }
