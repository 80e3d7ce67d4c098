"""The derived models by name, and how each is made.

A model is made again only when its recipe changed: the stamp beside it holds a hash
of the recipe's parameters, of the code that follows it and of what it starts from.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import (
    by_domain, deep, experts, foreign, gguf_copy, llama_states, shaped, texts_by_domain, tiny, vocabulary, vocabulary_kinds, wide,
)  # fmt: skip
from .archives import downloads
from .cache import Stamp, models_dir, scratch_dir
from .errors import SetupError
from .fetch import fetch
from .requantize import requantize
from .tiny_specs import GPT_OSS, MIXTURE_BASE, MIXTURE_TYPES, TYPE_BASE, WEIGHT_TYPES, tiny_specs


@dataclass(frozen=True)
class Options:
    """What a caller may choose about smollm2-deep, smollm2-wide and smollm2-domains."""

    seed: int = 1
    n_params: float = 1e9
    width: int | None = None  # with n_layer instead of n_params
    n_layer: int | None = None
    wide_type: str = "f16"
    prompts: Path | None = None  # whose categories are the domains


@dataclass(frozen=True)
class Model:
    name: str
    about: str
    recipe: str
    make: Callable[[Path], None]  # writes the file of that path, or the parts of a split beside it
    file_names: tuple[str, ...]
    needs: tuple[str, ...] = ()  # models it is made from
    only_by_name: bool = False  # too big to be made with all the others, or of what a user has to give


def catalog(options: Options = Options()) -> dict[str, Model]:
    models = [_tiny(spec) for spec in tiny_specs()]
    models += [_foreign(spec) for spec in foreign.FOREIGN]
    models += [_requantised(f"tiny-llama-{t.lower()}", TYPE_BASE.name, t) for t in WEIGHT_TYPES]
    models += [_requantised(f"tiny-mixtral-{t.lower()}", MIXTURE_BASE.name, t) for t in MIXTURE_TYPES]
    models.append(_requantised("tiny-gpt-oss-mxfp4", GPT_OSS.name, "MXFP4"))
    models += [_requantised("smollm2-q8", "smollm2", "Q8_0"), _deep(options), _experts(options), _wide(options)]
    models.append(_by_domain(options))
    models += [_shaped(spec) for spec in shaped.shaped_specs()]
    return {model.name: model for model in models}


def make_models(names: list[str], options: Options = Options()) -> None:
    """Makes those that are missing or out of date, and before them what they need."""
    models = catalog(options)
    unknown = [name for name in names if name not in models]
    if unknown:
        raise SetupError(f"no derived model is called '{unknown[0]}': 'scripts/models.py list' shows them all")
    first = [n for name in names for n in models[name].needs if n in models and n not in names]
    for stage in (lambda m: not m.needs, lambda m: m.needs):
        chosen = [models[name] for name in dict.fromkeys([*first, *names]) if stage(models[name])]
        stale = [m for m in chosen if not _is_current(m)]
        for need in {n for m in stale for n in m.needs if n not in models}:
            fetch(need)
        # Most of the time goes to programs that this waits for.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_make, stale))


def _is_current(model: Model) -> bool:
    files = [models_dir() / name for name in model.file_names]
    return Stamp(model.name, model.recipe).matches(files)


def _make(model: Model) -> None:
    print(f"forerun: making {model.name}: {model.about}", flush=True)
    with scratch_dir(models_dir()) as scratch:
        model.make(scratch / f"{model.name}.gguf")
        files = [models_dir() / name for name in model.file_names]
        for file in files:
            os.replace(scratch / file.name, file)
    Stamp(model.name, model.recipe).write(files)


def _recipe(*parameters, code: tuple) -> str:
    digest = hashlib.sha256(repr(parameters).encode())
    for module in code:
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()


def _tiny(spec) -> Model:
    def make(path: Path) -> None:
        tiny.write_tiny(spec, path)

    names = tuple(p.name for p in tiny.part_paths(spec, Path(f"{spec.name}.gguf")))
    about = f"random {spec.arch} weights, {spec.weight_type}"
    return Model(spec.name, about, _recipe(spec, code=(tiny, vocabulary, vocabulary_kinds)), make, names)


def _foreign(spec) -> Model:
    def make(path: Path) -> None:
        foreign.write_foreign(spec, path)

    recipe = _recipe(spec, code=(tiny, foreign, vocabulary))
    return Model(spec.name, f"random {spec.arch} weights: {spec.about}", recipe, make, (f"{spec.name}.gguf",))


def _requantised(name: str, source: str, weight_type: str) -> Model:
    def make(path: Path) -> None:
        requantize(models_dir() / f"{source}.gguf", path, weight_type)

    made = {spec.name: spec for spec in (TYPE_BASE, MIXTURE_BASE, GPT_OSS)}
    base = made[source] if source in made else downloads()["models"][source]["sha256"]
    code = (tiny, vocabulary) if source in made else ()
    recipe = _recipe(base, weight_type, downloads()["llama_cpp"]["version"], code=code)
    return Model(name, f"{source} in {weight_type}", recipe, make, (f"{name}.gguf",), (source,))


def _deep(options: Options) -> Model:
    def make(path: Path) -> None:
        deep.make_deep(models_dir() / "smollm2.gguf", path, options.seed)

    recipe = _recipe(downloads()["models"]["smollm2"]["sha256"], options.seed, code=(deep, gguf_copy))
    about = f"smollm2 with redundant layers, seed {options.seed}"
    return Model("smollm2-deep", about, recipe, make, ("smollm2-deep.gguf",), ("smollm2",))


def _experts(options: Options) -> Model:
    def make(path: Path) -> None:
        experts.make_experts(models_dir() / "smollm2.gguf", path, options.seed)

    recipe = _recipe(downloads()["models"]["smollm2"]["sha256"], options.seed, code=(experts, gguf_copy))
    about = f"smollm2 as a mixture of experts, seed {options.seed}"
    return Model("smollm2-experts", about, recipe, make, ("smollm2-experts.gguf",), ("smollm2",))


def _wide(options: Options) -> Model:
    def make(path: Path) -> None:
        source = models_dir() / "smollm2.gguf"
        old = wide.source_shape(gguf_copy.Source(source))
        if options.width:
            new = wide.widened(old, options.width, options.n_layer or old.n_layer)
        else:
            new = wide.shape_for(old, options.n_params)
        print(f"forerun: width {new.width}, {new.n_layer} layers, {new.n_params() / 1e9:.2f}B parameters", flush=True)
        wide.make_wide(source, path, new, options.wide_type)

    chosen = (options.n_params, options.width, options.n_layer, options.wide_type)
    recipe = _recipe(downloads()["models"]["smollm2"]["sha256"], *chosen, code=(wide, gguf_copy))
    about, files = "smollm2 at a big model's cost", ("smollm2-wide.gguf",)
    return Model("smollm2-wide", about, recipe, make, files, ("smollm2",), only_by_name=True)


def _by_domain(options: Options) -> Model:
    def make(path: Path) -> None:
        if options.prompts is None:
            raise SetupError("smollm2-domains: give prompts whose categories are its domains (--prompts FILE)")
        source = models_dir() / "smollm2.gguf"
        texts = texts_by_domain.answered(texts_by_domain.prompts_by_domain(options.prompts), source)
        by_domain.make_by_domain(source, path, texts)

    prompts = options.prompts.read_bytes() if options.prompts else b""
    code = (by_domain, texts_by_domain, llama_states, gguf_copy)
    recipe = _recipe(downloads()["models"]["smollm2"]["sha256"], hashlib.sha256(prompts).hexdigest(), code=code)
    about, files = "smollm2 with layers for every domain", ("smollm2-domains.gguf",)
    return Model("smollm2-domains", about, recipe, make, files, ("smollm2",), only_by_name=True)


def _shaped(spec: shaped.ShapedSpec) -> Model:
    def make(path: Path) -> None:
        shaped.write_shaped(spec, path)

    about = f"random weights of the shape of {spec.shape.title}, {spec.n_bytes() / 1e9:.2f} GB"
    recipe = _recipe(spec, code=(shaped, vocabulary))
    return Model(spec.name, about, recipe, make, (f"{spec.name}.gguf",), only_by_name=True)
