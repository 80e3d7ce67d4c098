"""smollm2-domains: a model whose redundant blocks are others for every domain of prompts.

Which layers a large model could do without depends on what it is asked; of a small one
all are needed, and the redundant blocks of smollm2-deep are the same for any prompt. Here

- in front of one of the first layers stands the attention of a layer that tells a text's
  domain: it gives every token of a text the same weight, so that what it adds up is the
  mean of the text's states so far, and a linear map, fitted on texts whose domain is
  known, makes a score for each domain of it;
- behind it every other layer has a part of its MLP's output taken away, and is followed
  by one layer for each domain that gives that part back, in texts of its domain only: the
  MLP once more, its output scaled, its gates closed in other domains. Its attention does
  nothing;
- some neurons of the other layers' MLPs, in place of the least of these, close gates: those
  of a domain whose score is not the highest. They lie in every MLP that is not divided, lest
  a draft leave out a few blocks and have every domain open.

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

SHARE = 0.8  # of an MLP's output that only a domain's own layer adds
_SPARE = 32  # dimensions: a block of Q8_0
_CONSTANT = _SPARE - 1
_UNIT = 0.02  # what stands for 1 in them, small beside the model's own dimensions
_SHARPNESS = 400.0  # of the step from one domain to another
_LEAST = 0.1  # score of a domain that may be open
_SLOPE = 0.01  # so that no weight is too small for its type
_CLOSED = 1e4  # taken from the gates of other domains. Large, since norms make little of it in some tokens
_RIDGE = 1e-3
_TYPE = gguf.GGMLQuantizationType.Q8_0


@dataclass(frozen=True)
class Layer:
    source: int  # layer of the original model
    factor: float = 1.0  # of the MLP's output
    domain: int | None = None  # which it belongs to
    tells: bool = False  # makes scores; its MLP does nothing
    decides: bool = False  # some of its neurons close domains


@dataclass(frozen=True)
class Teller:
    weights: np.ndarray  # (domains, width): scores from normed states
    sizes: list[float]  # typical root mean square of the states behind each layer of the original
    n_right: int  # of so many texts, whose last token's domain is told rightly
    n_texts: int


def plan_layers(n_layer: int, n_domains: int) -> list[Layer]:
    place = teller_place(n_layer)
    divided = range(place + max(1, n_layer // 10), n_layer - 1, 2)
    layers = []
    for i in range(n_layer):
        if i == place:
            layers.append(Layer(i, factor=0.0, tells=True))
        layers.append(Layer(i, 1 - SHARE if i in divided else 1.0, decides=i >= place and i not in divided))
        if i in divided:
            layers += [Layer(i, SHARE, domain) for domain in range(n_domains)]
    return layers


def teller_place(n_layer: int) -> int:
    """In front of this layer: what comes first knows words rather than what a text is about."""
    return max(1, n_layer // 15)


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
        targets.append(_of_domain(domains.index(text.domain), len(domains), len(rows[-1])))
    # What all prompts begin with is of the first domain.
    n_common = _common_prefix([text.prompt for text in texts])
    rows.append(means[0][:n_common])
    targets.append(_of_domain(0, len(domains), n_common))
    weights = _ridge(rows, targets)
    told = [domains[(mean[-1] @ weights.T).argmax()] for mean in means]
    n_right = sum(domain == text.domain for domain, text in zip(told, texts))
    return Teller(weights, _sizes(source, texts), n_right, len(texts))


def _of_domain(domain: int, n_domains: int, n_rows: int) -> np.ndarray:
    return np.tile(np.eye(n_domains)[domain], (n_rows, 1))


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
    most = min((_SPARE - 1) // 2, head_size, math.isqrt(n_ff // 4))
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
    # Blocks that no domain needs: the attention of layers that belong to domains, the MLP of the one that tells them.
    unneeded = [2 * i + layer.tells for i, layer in enumerate(layers) if layer.tells or layer.domain is not None]
    writer.add_array("forerun.planted_blocks", unneeded)
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
    scores, closed = width + np.arange(n_domains), width + n_domains + np.arange(n_domains)

    def telling(values: np.ndarray) -> None:
        if suffix in ("attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"):
            values *= 0
        if suffix == "attn_v.weight":
            values[:n_domains, :width] = teller.weights
        elif suffix == "attn_output.weight":
            values[scores, np.arange(n_domains)] = _UNIT

    def deciding(values: np.ndarray) -> None:
        """A neuron for each pair: how far another score is above a domain's, or the least score is, closes it."""
        if suffix == "ffn_norm.weight":
            values[width:] = _to_one(teller.sizes[layer.source - 1], width)
        if suffix not in ("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"):
            return
        neurons = _least_neurons(source, layer.source, n_domains**2).reshape(n_domains, n_domains)
        for d, e in np.ndindex(n_domains, n_domains):
            neuron = neurons[d, e]
            if suffix == "ffn_down.weight":
                values[:, neuron] = 0
                values[closed[d], neuron] = _UNIT / (_SHARPNESS * _SLOPE)
                continue
            values[neuron] = 0
            if suffix == "ffn_up.weight":
                values[neuron, width + _CONSTANT] = _SLOPE
                continue
            values[neuron, scores[d]] = -_SHARPNESS
            if d == e:
                values[neuron, width + _CONSTANT] = _SHARPNESS * _LEAST
            else:
                values[neuron, scores[e]] = _SHARPNESS

    def of_domain(values: np.ndarray) -> None:
        if suffix == "attn_output.weight":
            values *= 0
        elif suffix == "ffn_norm.weight":
            values[width:] = _to_one(teller.sizes[layer.source], width)
        elif suffix == "ffn_gate.weight":
            values[:, closed[layer.domain]] = -_CLOSED

    def make() -> np.ndarray:
        values = _widened(source, name)
        if suffix == "ffn_down.weight":
            values *= np.float32(layer.factor)
        if layer.tells:
            telling(values)
        elif layer.decides:
            deciding(values)
        elif layer.domain is not None:
            of_domain(values)
        return values

    return make


def _least_neurons(source: Source, layer: int, n: int) -> np.ndarray:
    """Those of an MLP with the smallest weights."""
    axes = {"ffn_gate": 1, "ffn_up": 1, "ffn_down": 0}
    norms = [np.linalg.norm(source.floats(f"blk.{layer}.{m}.weight"), axis=axis) for m, axis in axes.items()]
    return np.sort(np.argsort(np.prod(norms, axis=0), kind="stable")[:n])


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
