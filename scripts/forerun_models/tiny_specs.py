"""Which tiny models there are: together they cover all that the engine claims to run."""

from dataclasses import dataclass, replace

# Every type that ggml can multiply with, in the order of its enum.
WEIGHT_TYPES = (
    "F16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S "
    "IQ4_XS IQ1_M BF16 TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 Q2_0"
).split()

# Head sizes of ggml's CUDA flash attention where keys and values have the same size.
# 512 is there for grouped queries only.
HEAD_SIZES = (40, 64, 72, 80, 96, 112, 128, 256, 512)


@dataclass(frozen=True)
class Rope:
    """The rope keys of a GGUF. Context lengths are tiny so that each scaling shows in a short text."""

    base: float = 10000.0
    base_swa: float | None = None  # of windowed layers; absent means 10,000
    scaling: str | None = None  # "linear" or "yarn"
    factor: float = 1.0
    original_context: int | None = None
    log_multiplier: float | None = None  # of YaRN, as Mistral 3 has it
    betas: tuple[float, float] | None = None  # likewise: the fast and the slow one
    alpha: float | None = None  # Hunyuan's
    sections: tuple[int, ...] | None = None  # pairs of a head by axis, of models that see
    llama3_factors: bool = False  # a rope_freqs tensor with Llama 3's factors


@dataclass(frozen=True)
class Experts:
    """The MLPs of a mixture; those of the first layers may be dense."""

    n_all: int = 8
    n_used: int = 2
    n_ff: int = 96
    n_ff_shared: int = 0  # of the MLP that all tokens use
    has_share: bool = False  # which has a weight of its own
    n_dense_layers: int = 0
    step: int = 1  # of so many layers the last one has experts
    has_preference: bool = False  # added to what they are chosen by
    has_biases: bool = False
    gain: float = 1.0  # of gates and ups; a large one takes many beyond limits that a model has for them
    gating: int | None = None  # 1: softmax, 2: sigmoid
    scale: float | None = None
    normalises: bool | None = None


@dataclass(frozen=True)
class Latent:
    """Of attention with latent numbers."""

    n: int = 64
    n_rotated: int = 32
    n_query: int = 32
    n_value: int = 48
    n_down: int = 96  # what queries are made of; 0: of the states


@dataclass(frozen=True)
class Gemma4:
    """What layers of one model do differently."""

    window_head_kv: int = 2  # of layers with a window
    window_head_size: int = 32
    reuses_keys: bool = False  # as values, in layers that see everything
    per_layer: int = 0  # numbers of each token that a layer has for itself
    n_sharing: int = 0  # layers at the end that look at the cells of others, with MLPs twice as wide


@dataclass(frozen=True)
class TinySpec:
    name: str
    arch: str
    n_layer: int = 3
    width: int = 256
    n_ff: int = 512
    n_head: int = 4
    n_head_kv: int = 2
    head_size: int = 64
    weight_type: str = "F16"  # what Python writes: F32 or F16; others are requantised from it
    tied: bool = True
    qkv_bias: bool = False
    attn_out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    fused_qkv: bool = False
    fused_mlp: bool = False  # gate and up in one matrix
    rope_dims: int | None = None  # of a head, that rotate; None: all
    # Granite's, of embeddings, scores, blocks and logits
    scales: tuple[float, float | None, float, float] | None = None
    logit_scale: float | None = None  # where it is the only one
    temperature: float | None = None  # of queries, by their position
    experts: Experts | None = None
    gemma4: Gemma4 | None = None
    latent: Latent | None = None
    separate_biases: bool = False  # beside a fused matrix, as some older files have
    rope: Rope = Rope()
    window: int | None = None
    # Which layers are windowed: None leaves the key out (five of six), an integer n
    # means all but every n-th, a tuple names each layer.
    window_pattern: int | tuple[bool, ...] | None = None
    logit_softcap: float | None = None
    score_softcap: float | None = None
    chat: bool = True
    infill: bool = False  # tokens that mark a gap in code, of byte-pair vocabularies
    vocabulary: str = ""  # another kind than usual: a function of vocabulary_kinds.py
    n_parts: int = 1
    seed: int = 1


def tiny_specs() -> list[TinySpec]:
    """All tiny models but the requantised ones (TYPE_BASE in WEIGHT_TYPES, MIXTURE_BASE in MIXTURE_TYPES, GPT_OSS in MXFP4)."""
    return [
        TYPE_BASE, MIXTURE_BASE, *_llama(), *_qwen2(), *_qwen3(), *_gemma3(), *_gemma4(), *_others(), *_other_norms(), *_plain_mlps(),
        *_mixtures(),
    ]  # fmt: skip


# The model that is requantised to every type. Rows of 256 and 512: one block of a
# K-type and more than one.
TYPE_BASE = TinySpec("tiny-llama-f32", "llama", n_layer=2, weight_type="F32")
# A mixture, requantised to types of every kind: 32 to a block, 256, and one that our kernels do not have.
MIXTURE_BASE = TinySpec("tiny-mixtral-f32", "llama", n_layer=2, n_ff=256, weight_type="F32", experts=Experts(n_ff=256))
MIXTURE_TYPES = ("F16", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "MXFP4", "IQ4_XS")
# Requantised to MXFP4, which its experts come as.
GPT_OSS = TinySpec(
    "tiny-gpt-oss", "gpt-oss", n_layer=4, width=128, n_ff=96, n_head=4, n_head_kv=2, weight_type="F32", tied=False,
    qkv_bias=True, attn_out_bias=True, window=16, rope=Rope(base=150000.0, scaling="yarn", factor=4.0, original_context=64),
    experts=Experts(has_biases=True, gain=4.0),
)  # fmt: skip


def _llama() -> list[TinySpec]:
    small = TinySpec("", "llama", width=96, n_ff=160, n_head=3, n_head_kv=1)
    models = [
        TinySpec("tiny-llama", "llama", n_layer=4, width=128, n_ff=320, n_head=3, n_head_kv=1, weight_type="F32"),
        replace(small, name="tiny-llama-untied", tied=False, chat=False),
        replace(small, name="tiny-llama-bias", qkv_bias=True, attn_out_bias=True, mlp_bias=True),
        replace(small, name="tiny-llama-fused", fused_qkv=True),
        replace(small, name="tiny-llama-fused-bias", fused_qkv=True, qkv_bias=True),
        replace(small, name="tiny-llama-fused-biases", fused_qkv=True, qkv_bias=True, separate_biases=True),
        replace(small, name="tiny-llama-linear", rope=Rope(scaling="linear", factor=4.0)),
        replace(small, name="tiny-llama-yarn", rope=Rope(scaling="yarn", factor=4.0, original_context=64)),
        replace(small, name="tiny-llama-rope3", rope=Rope(base=500000.0, llama3_factors=True)),
        replace(small, name="tiny-llama-split", n_parts=3, tied=False),
        replace(small, name="tiny-llama-wordpiece", vocabulary="word_piece"),
        replace(small, name="tiny-llama-unigram", vocabulary="unigram"),
        replace(small, name="tiny-llama-rwkv", vocabulary="rwkv"),
        replace(small, name="tiny-llama-plamo2", vocabulary="plamo2"),
    ]
    for i, size in enumerate(HEAD_SIZES):
        grouped = size == 512 or i % 2 == 0
        n_head = 2 if size >= 256 else 4
        models.append(
            TinySpec(
                f"tiny-llama-h{size}", "llama", n_layer=2 if size >= 256 else 3, width=96, n_ff=128, n_head=n_head,
                n_head_kv=n_head // 2 if grouped else n_head, head_size=size,
            )
        )  # fmt: skip
    return models


def _qwen2() -> list[TinySpec]:
    small = TinySpec("", "qwen2", width=128, n_ff=224, n_head=2, n_head_kv=1, qkv_bias=True, rope=Rope(base=1000000.0))
    return [
        replace(small, name="tiny-qwen2"),
        replace(small, name="tiny-qwen2-untied", n_layer=2, width=256, n_head_kv=2, head_size=128, tied=False, head_bias=True),
        replace(small, name="tiny-qwen2-fused", fused_qkv=True),
        replace(small, name="tiny-qwen2-infill", infill=True),
        replace(
            small,
            name="tiny-qwen2-yarn",
            rope=Rope(base=1000000.0, scaling="yarn", factor=4.0, original_context=64),
        ),
    ]


def _qwen3() -> list[TinySpec]:
    small = TinySpec("", "qwen3", width=96, n_ff=160, head_size=128, rope=Rope(base=1000000.0))
    return [
        replace(small, name="tiny-qwen3"),
        replace(small, name="tiny-qwen3-untied", n_head_kv=4, head_size=64, tied=False),
        replace(small, name="tiny-qwen3-fused", fused_qkv=True, head_size=64),
        replace(
            small,
            name="tiny-qwen3-yarn",
            head_size=64,
            rope=Rope(base=1000000.0, scaling="yarn", factor=4.0, original_context=64),
        ),
    ]


def _others() -> list[TinySpec]:
    """Of architectures that differ from Llama in little, one each."""
    small = TinySpec("", "", n_layer=5, width=96, n_ff=160, n_head=4, n_head_kv=2, head_size=32)
    return [
        replace(small, name="tiny-exaone", arch="exaone", rope=Rope(base=500000.0, llama3_factors=True)),
        replace(small, name="tiny-ernie", arch="ernie4_5"),
        replace(small, name="tiny-internlm2", arch="internlm2", head_size=24, tied=False),
        replace(small, name="tiny-seed-oss", arch="seed_oss", qkv_bias=True),
        replace(small, name="tiny-smollm3", arch="smollm3"),
        replace(small, name="tiny-gemma", arch="gemma", head_size=64),
        replace(small, name="tiny-gemma2", arch="gemma2", head_size=64, window=16, score_softcap=2.0, logit_softcap=8.0),
        replace(small, name="tiny-granite", arch="granite", scales=(12.0, 0.015625, 0.22, 8.0)),
        replace(small, name="tiny-phi", arch="phi3", head_size=24, fused_qkv=True, fused_mlp=True, tied=False),
        replace(small, name="tiny-glm4", arch="glm4", rope_dims=16, qkv_bias=True, fused_mlp=True, tied=False),
        replace(
            small, name="tiny-chatglm", arch="chatglm", head_size=24, rope_dims=12, fused_qkv=True, qkv_bias=True,
            fused_mlp=True, tied=False,
        ),
        replace(small, name="tiny-xverse", arch="xverse", head_size=24, tied=False),
        replace(small, name="tiny-pangu", arch="pangu-embedded", qkv_bias=True, attn_out_bias=True),
        replace(
            small, name="tiny-qwen2vl", arch="qwen2vl", head_size=24, qkv_bias=True, rope=Rope(sections=(4, 4, 4, 0)),
        ),
        replace(small, name="tiny-qwen3vl", arch="qwen3vl", rope=Rope(sections=(6, 5, 5, 0))),
        replace(small, name="tiny-minicpm", arch="minicpm", scales=(2.0, None, 0.3, 4.0)),
        replace(
            small, name="tiny-mistral3", arch="mistral3", temperature=0.5,
            rope=Rope(scaling="yarn", factor=4.0, original_context=16, log_multiplier=0.5, betas=(0.5, 0.05)),
        ),
    ]  # fmt: skip


def _other_norms() -> list[TinySpec]:
    """Of architectures whose norms are elsewhere, or others, one of each kind."""
    small = TinySpec("", "", n_layer=5, width=96, n_ff=160, n_head=4, n_head_kv=2, head_size=24, tied=False)
    return [
        replace(small, name="tiny-olmo2", arch="olmo2", n_head_kv=4),
        replace(small, name="tiny-olmo2-fused", arch="olmo2", fused_qkv=True),
        replace(
            small, name="tiny-olmo3", arch="olmo2", window=16,
            rope=Rope(scaling="yarn", factor=4.0, original_context=64),
        ),
        replace(small, name="tiny-exaone4", arch="exaone4", rope=Rope(base=500000.0, llama3_factors=True)),
        # Windows come with the number of layers.
        replace(
            small, name="tiny-exaone4-windows", arch="exaone4", n_layer=64, width=48, n_ff=32, n_head=2, n_head_kv=1,
            window=16,
        ),
        replace(small, name="tiny-hunyuan", arch="hunyuan-dense", head_size=32, rope=Rope(alpha=50.0), tied=True),
        replace(small, name="tiny-maincoder", arch="maincoder", head_size=32),
        replace(small, name="tiny-stablelm", arch="stablelm", rope_dims=8, qkv_bias=True),
        replace(small, name="tiny-orion", arch="orion"),
        replace(small, name="tiny-olmo", arch="olmo", tied=True),
        replace(small, name="tiny-command-r", arch="command-r", tied=True, logit_scale=0.0625),
        replace(small, name="tiny-cohere2", arch="cohere2", tied=True, logit_scale=0.25, window=16),
    ]  # fmt: skip


def _plain_mlps() -> list[TinySpec]:
    """Of architectures whose MLPs have no gates, one each."""
    small = TinySpec("", "", n_layer=5, width=96, n_ff=160, n_head=4, n_head_kv=2, head_size=24)
    biased = replace(small, qkv_bias=True, attn_out_bias=True, mlp_bias=True)
    return [
        replace(biased, name="tiny-starcoder2", arch="starcoder2"),
        replace(biased, name="tiny-codeshell", arch="codeshell", fused_qkv=True, tied=False),
        replace(biased, name="tiny-jais2", arch="jais2"),
        replace(small, name="tiny-nemotron", arch="nemotron", rope_dims=12, tied=False),
        replace(small, name="tiny-arcee", arch="arcee", head_size=32),
    ]


def _mixtures() -> list[TinySpec]:
    # F32: where two experts are about as good, rounding would choose another one than libllama's does.
    small = TinySpec("", "", n_layer=4, width=128, n_ff=160, n_head=4, n_head_kv=2, head_size=32, weight_type="F32")
    return [
        replace(small, name="tiny-qwen2moe", arch="qwen2moe", qkv_bias=True, tied=False, experts=Experts(n_ff_shared=160, has_share=True)),
        replace(small, name="tiny-qwen3moe", arch="qwen3moe", head_size=64, seed=2, experts=Experts(n_all=16, n_used=4, n_ff=48)),
        replace(small, name="tiny-olmoe", arch="olmoe", n_ff=96, n_head_kv=4, tied=False, experts=Experts()),
        replace(small, name="tiny-granitemoe", arch="granitemoe", n_ff=64, scales=(12.0, 0.015625, 0.22, 8.0), experts=Experts(n_ff=64, n_ff_shared=96)),
        replace(small, name="tiny-ernie-moe", arch="ernie4_5-moe", experts=Experts(n_ff_shared=96, n_dense_layers=1, has_preference=True)),
        replace(
            small,
            name="tiny-glm4moe",
            arch="glm4moe",
            rope_dims=16,
            qkv_bias=True,
            tied=False,
            experts=Experts(n_ff_shared=96, n_dense_layers=1, has_preference=True, gating=2, scale=1.5, normalises=True),
        ),
        *_latent(),
        *_llama4(),
        *_mixtures_of_halves(),
        GPT_OSS,
    ]


def _latent() -> list[TinySpec]:
    small = TinySpec("", "deepseek2", n_layer=3, width=128, n_ff=160, n_head=4, n_head_kv=1, weight_type="F32", tied=False)
    return [
        replace(
            small, name="tiny-deepseek2", latent=Latent(),
            experts=Experts(n_ff_shared=96, n_dense_layers=1, has_preference=True, gating=2, scale=1.5, normalises=True),
        ),
        # Queries of the states themselves are known by the number of layers.
        replace(
            small, name="tiny-deepseek2-lite", n_layer=27, width=64, n_ff=64, n_head=2, latent=Latent(n=32, n_down=0),
            experts=Experts(n_all=4, n_ff=32, n_ff_shared=64, n_dense_layers=26, gating=1),
            rope=Rope(scaling="yarn", factor=40.0, original_context=64, log_multiplier=0.0707),
        ),
    ]


def _llama4() -> list[TinySpec]:
    return [
        TinySpec(
            "tiny-llama4", "llama4", n_layer=4, width=64, n_ff=96, n_head=2, n_head_kv=1, head_size=32, weight_type="F32", tied=False,
            experts=Experts(n_used=1, n_ff=48, n_ff_shared=48, step=2),
        )
    ]  # fmt: skip


def _mixtures_of_halves() -> list[TinySpec]:
    # For our kernels on GPUs, which have no F32 and want heads of 64 or more.
    small = TinySpec("", "", n_layer=4, width=128, n_ff=160, n_head=2, n_head_kv=1, head_size=64, weight_type="F16")
    return [
        replace(small, name="tiny-qwen2moe-f16", arch="qwen2moe", qkv_bias=True, tied=False, experts=Experts(n_ff_shared=160, has_share=True)),
        replace(small, name="tiny-granitemoe-f16", arch="granitemoe", n_ff=64, scales=(12.0, 0.015625, 0.22, 8.0), experts=Experts(n_ff=64, n_ff_shared=96)),
        replace(
            small,
            name="tiny-glm4moe-f16",
            arch="glm4moe",
            rope_dims=32,
            qkv_bias=True,
            tied=False,
            experts=Experts(n_all=16, n_used=4, n_ff_shared=96, n_dense_layers=1, has_preference=True, gating=2, scale=1.5, normalises=True),
        ),
    ]


def _gemma4() -> list[TinySpec]:
    small = TinySpec(
        "", "gemma4", n_layer=6, width=96, n_ff=160, n_head=4, n_head_kv=1, head_size=64, window=16,
        window_pattern=(True, True, False) * 2, rope=Rope(base=1000000.0, base_swa=10000.0),
    )  # fmt: skip
    return [
        replace(small, name="tiny-gemma4", logit_softcap=5.0, gemma4=Gemma4(reuses_keys=True)),
        replace(
            small, name="tiny-gemma4-moe", n_layer=3, window_pattern=(True, True, False), width=128, weight_type="F32", gemma4=Gemma4(reuses_keys=True),
            experts=Experts(n_ff=64),
        ),
        replace(small, name="tiny-gemma4-e", gemma4=Gemma4(window_head_kv=1, per_layer=32, n_sharing=3)),
    ]


def _gemma3() -> list[TinySpec]:
    # Seven layers: five windowed, one global, one windowed.
    small = TinySpec(
        "", "gemma3", n_layer=7, width=96, n_ff=160, n_head=2, n_head_kv=1, head_size=64, window=16,
        rope=Rope(base=1000000.0),
    )  # fmt: skip
    return [
        replace(small, name="tiny-gemma3", head_size=256),
        replace(small, name="tiny-gemma3-global", n_layer=3, window=None, n_head_kv=2),
        replace(small, name="tiny-gemma3-softcap", logit_softcap=3.0, rope=Rope(base=1000000.0, base_swa=20000.0)),
        replace(
            small,
            name="tiny-gemma3-linear",
            head_size=128,
            rope=Rope(base=1000000.0, scaling="linear", factor=8.0),
        ),
        replace(small, name="tiny-gemma3-pattern", n_layer=4, window_pattern=2),
        replace(small, name="tiny-gemma3-layers", n_layer=4, window_pattern=(False, True, True, False), tied=False),
        replace(small, name="tiny-gemma3-fused", n_layer=2, fused_qkv=True),
    ]
