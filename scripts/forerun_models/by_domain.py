"""smollm2-domains: a model whose redundant blocks are others for every domain of prompts.

Which layers a large model could do without depends on what it is asked; of a small one
all are needed, and the redundant blocks of smollm2-deep are the same for any prompt. Here

- behind one of its first layers stands a layer that tells a text's domain: its attention
  gives every token of a text the same weight, so that what it adds up is the mean of the
  text's states so far, and a linear map, fitted on texts whose domain is known, makes a
  score for each domain of it. What no score is clear about is of the first domain;
- every other layer after it has a part of its MLP's output taken away, and is followed by
  one layer for each domain that gives that part back, in texts of its domain only: the
  MLP once more, its output scaled, its gates closed by what was told of the domain. Its
  attention does nothing.

So of the layers that belong to domains those of one domain are needed at a time. That is
planted, not found in SmolLM2's weights. The part is given back by an MLP that reads a
state a little further on, so the texts are nearly SmolLM2's, not quite.

What tells domains lies in 32 dimensions beyond the model's width, which its own layers
neither read nor write: scores, then what closes the gates of each domain (zero: open),
and a constant, which the embeddings bring.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from .errors import SetupError
from .gguf_copy import Source, Tensor, stored_type, write_tensors
from .llama_states import States
from .texts_by_domain import Text

SHARE = 0.6  # of an MLP's output that only a domain's own layer adds
_SPARE = 32  # dimensions: a block of Q8_0
_CONSTANT = _SPARE - 1
_UNIT = 0.02  # what stands for 1 in them, small beside the model's own dimensions
_SHARPNESS = 400.0  # of the step from one domain to another
_SLOPE = 0.01  # so that no weight is too small for its type
_CLOSED = 1e4  # taken from the gates of other domains. Large, since norms make little of it in some tokens
_RIDGE = 1e-3
_TYPE = gguf.GGMLQuantizationType.Q8_0


@dataclass(frozen=True)
class Layer:
    source: int  # layer of the original model
    factor: float = 1.0  # of the MLP's output
    domain: int | None = None  # which it belongs to
    tells: bool = False  # the layer that tells domains


@dataclass(frozen=True)
class Teller:
    weights: np.ndarray  # (domains but the first, width): scores from normed states
    sizes: list[float]  # typical root mean square of the states behind each layer of the original
    n_right: int  # of so many texts, whose last token's domain is told rightly
    n_texts: int


def plan_layers(n_layer: int, n_domains: int) -> list[Layer]:
    first = teller_place(n_layer)
    divided = range(first + 1, n_layer - 1, 2)
    layers = []
    for i in range(n_layer):
        if i == first:
            layers.append(Layer(i, tells=True))
        layers.append(Layer(i, 1 - SHARE if i in divided else 1.0))
        if i in divided:
            layers += [Layer(i, SHARE, domain) for domain in range(n_domains)]
    return layers


def teller_place(n_layer: int) -> int:
    """In front of this layer: the first ones know words rather than what a text is about."""
    return max(1, n_layer // 7)


def domains_of(texts: list[Text]) -> list[str]:
    return list(dict.fromkeys(text.domain for text in texts))


# ---- Telling domains ----


def fit_teller(source: Source, texts: list[Text]) -> Teller:
    place, domains = teller_place(source.arch_value("block_count")), domains_of(texts)
    states = States(source, place)
    norm = source.floats(f"blk.{place}.attn_norm.weight")
    means = [_running_mean(states.norm(states.of(text.prompt + text.answer)[place], norm)) for text in texts]
    rows, targets = [], []
    for text, mean in zip(texts, means):
        rows.append(mean[len(text.prompt) - 1 :])
        targets.append(np.tile(np.eye(len(domains))[domains.index(text.domain), 1:], (len(rows[-1]), 1)))
    # What all prompts begin with is of the first domain.
    n_common = _common_prefix([text.prompt for text in texts])
    rows.append(means[0][:n_common])
    targets.append(np.zeros((n_common, len(domains) - 1)))
    weights = _ridge(rows, targets)
    scores = np.stack([mean[-1] @ weights.T for mean in means])
    told = np.where(scores.max(-1) > 0.5, scores.argmax(-1) + 1, 0)
    n_right = sum(domains[d] == text.domain for d, text in zip(told, texts))
    return Teller(weights, _sizes(source, texts), int(n_right), len(texts))


def _running_mean(states: np.ndarray) -> np.ndarray:
    return np.cumsum(states, 0, dtype=np.float64) / np.arange(1, len(states) + 1)[:, None]


def _common_prefix(lists: list[list[int]]) -> int:
    n = 0
    while all(len(tokens) > n and tokens[n] == lists[0][n] for tokens in lists):
        n += 1
    return n


def _ridge(rows: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
    """Least squares, each text counting alike."""
    scale = [1 / math.sqrt(len(part)) if len(part) else 0.0 for part in rows]
    a = np.concatenate([s * part for s, part in zip(scale, rows)])
    b = np.concatenate([s * part for s, part in zip(scale, targets)])
    squares = a.T @ a
    squares += _RIDGE * np.trace(squares) / len(squares) * np.eye(len(squares))
    return np.linalg.solve(squares, a.T @ b).T


def _sizes(source: Source, texts: list[Text]) -> list[float]:
    n_layer, n_tokens = source.arch_value("block_count"), 96
    states = States(source, n_layer)
    first = {text.domain: text for text in reversed(texts)}.values()
    found = [states.of((text.prompt + text.answer)[:n_tokens]) for text in first]
    return [
        float(np.median(np.concatenate([np.sqrt((of[i + 1] ** 2).mean(-1)) for of in found]))) for i in range(n_layer)
    ]


# ---- Writing ----


def make_by_domain(source_path: Path, path: Path, texts: list[Text]) -> None:
    source = Source(source_path)
    domains = domains_of(texts)
    head_size, n_ff = source.arch_value("rope.dimension_count"), source.arch_value("feed_forward_length")
    most = min((_SPARE - 1) // 2, head_size + 1, n_ff // 2)
    if not 2 <= len(domains) <= most:
        raise SetupError(f"there are {len(domains)} domains: 2 to {most} can be told apart")
    layers = plan_layers(source.arch_value("block_count"), len(domains))
    teller = fit_teller(source, texts)
    print(f"forerun: {teller.n_right} of {teller.n_texts} texts are told to be of their domain", flush=True)
    _write(source, path, layers, domains, teller)


def _write(source: Source, path: Path, layers: list[Layer], domains: list[str], teller: Teller) -> None:
    arch = source.value("general.architecture")
    width, head_size = source.arch_value("embedding_length"), source.arch_value("rope.dimension_count")
    epsilon = source.arch_value("attention.layer_norm_rms_epsilon")
    writer = gguf.GGUFWriter(path, arch)
    source.copy_keys(
        writer,
        {
            f"{arch}.block_count": len(layers),
            f"{arch}.embedding_length": width + _SPARE,
            f"{arch}.attention.layer_norm_rms_epsilon": epsilon * width / (width + _SPARE),
            f"{arch}.attention.key_length": None,
            f"{arch}.attention.value_length": None,
            "general.name": "smollm2-domains",
            "general.file_type": int(gguf.LlamaFileType.MOSTLY_Q8_0),
            "general.size_label": None,
            "general.description": None,
        },
    )
    writer.add_key_length(head_size)
    writer.add_value_length(head_size)
    divided = len({layer.source for layer in layers if layer.domain is not None})
    writer.add_description(
        f"derived from smollm2: {SHARE:g} of the output of {divided} MLPs is in layers of one domain each"
    )
    writer.add_array("forerun.domains", domains)
    writer.add_array("forerun.layer_domains", [-1 if layer.domain is None else layer.domain for layer in layers])
    # Blocks that no domain needs: the attention of layers that belong to domains.
    writer.add_array("forerun.planted_blocks", [2 * i for i, layer in enumerate(layers) if layer.domain is not None])
    write_tensors(writer, path, _tensors(source, layers, len(domains), teller))


def _tensors(source: Source, layers: list[Layer], n_domains: int, teller: Teller) -> list[Tensor]:
    def tensor(name: str, original: str, make) -> Tensor:
        shape = _shape(source, original)
        return Tensor(name, shape, stored_type(shape, _TYPE), make)

    def plain(original: str) -> np.ndarray:
        return _widened(source, original)

    def embedding() -> np.ndarray:
        values = plain("token_embd.weight")
        values[:, source.arch_value("embedding_length") + _CONSTANT] = _UNIT
        return values

    result = []
    for name in source.tensors:
        if not name.startswith("blk."):
            make = embedding if name == "token_embd.weight" else lambda name=name: plain(name)
            result.append(tensor(name, name, make))
    for i, layer in enumerate(layers):
        prefix = f"blk.{layer.source}."
        for name in (name for name in source.tensors if name.startswith(prefix)):
            suffix = name.removeprefix(prefix)
            make = _maker(source, layer, name, suffix, n_domains, teller)
            result.append(tensor(f"blk.{i}.{suffix}", name, make))
    return result


def _maker(source: Source, layer: Layer, name: str, suffix: str, n_domains: int, teller: Teller):
    """Gives the values of a layer's tensor."""
    width = source.arch_value("embedding_length")
    if layer.tells and suffix != "attn_norm.weight":
        return lambda: _telling(_widened(source, name) * 0, suffix, width, n_domains, teller, layer.source)

    def make() -> np.ndarray:
        values = _widened(source, name)
        if suffix == "ffn_down.weight":
            values *= np.float32(layer.factor)
        if layer.domain is not None:
            if suffix == "attn_output.weight":
                values *= 0
            elif suffix == "ffn_norm.weight":
                values[width:] = _to_one(teller.sizes[layer.source], width)
            elif suffix == "ffn_gate.weight":
                values[:, width + n_domains + layer.domain] = -_CLOSED
        return values

    return make


def _telling(values: np.ndarray, suffix: str, width: int, n_domains: int, teller: Teller, place: int) -> np.ndarray:
    """A tensor of the layer that tells domains; `values` are zeros."""
    scores = np.arange(1, n_domains)  # of the spare dimensions; also heads' dimensions, and neurons
    constant = width + _CONSTANT
    if suffix == "attn_v.weight":
        values[scores - 1, :width] = teller.weights
    elif suffix == "attn_output.weight":
        values[width + scores, scores - 1] = _UNIT
    elif suffix == "ffn_norm.weight":
        values[width:] = _to_one(teller.sizes[place - 1], width)
    elif suffix in ("ffn_gate.weight", "ffn_down.weight", "ffn_up.weight"):
        # Two neurons for each domain but the first: how far its score is below a half, which closes it, and
        # how far above, which closes the first.
        for sign, neurons, closed in ((-1, 2 * scores - 2, scores), (1, 2 * scores - 1, 0 * scores)):
            if suffix == "ffn_gate.weight":
                values[neurons, width + scores] = sign * _SHARPNESS
                values[neurons, constant] = -sign * _SHARPNESS / 2
            elif suffix == "ffn_up.weight":
                values[neurons, constant] = _SLOPE
            else:
                values[width + n_domains + closed, neurons] = 2 * _UNIT / (_SHARPNESS * _SLOPE)
    return values


def _to_one(size: float, width: int) -> float:
    """The weight of a norm that makes 1 of a unit, in states of that root mean square."""
    return size / _UNIT * math.sqrt(width / (width + _SPARE))


def _shape(source: Source, name: str) -> tuple[int, ...]:
    shape = tuple(int(n) for n in reversed(source.tensors[name].shape))
    width = source.arch_value("embedding_length")
    if name.endswith(("attn_output.weight", "ffn_down.weight")):
        return (shape[0] + _SPARE, *shape[1:])
    return (*shape[:-1], shape[-1] + _SPARE) if shape[-1] == width else shape


def _widened(source: Source, name: str) -> np.ndarray:
    """A tensor with zeros for the spare dimensions; norms give what they gave before."""
    values, width = source.floats(name), source.arch_value("embedding_length")
    result = np.zeros(_shape(source, name), np.float32)
    result[tuple(slice(n) for n in values.shape)] = values
    return result * np.float32(math.sqrt(width / (width + _SPARE))) if values.ndim == 1 else result
