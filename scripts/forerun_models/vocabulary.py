"""Small but real vocabularies for the tiny models.

Each covers every byte and has some merges, so that libllama loads it fully and any
text can be tokenised and turned back.
"""

from dataclasses import dataclass, field

import gguf

# Merges in order of priority, "_" standing for the space: enough for common English
# words to become one token and for the rest to need several.
MERGES = """
_ t|h e|i n|_ a|r e|o n|_t he|e r|_ s|a t|_ w|n d|_ o|_ c|_ b|i s|o r|e n|_ f|_ p|o u|in g|_ m|_ i|i t
_ d|a l|a r|_t o|_a nd|_o f|e s|_ h|a n|o m|_ l|l e|_ in|i c|e d|_ n|_ e|_ g|_b e|_ y|_t h|_y ou|_f or
_i s|_i t|_ on|_s t|_ re|_w h|_w it|_wit h|_th at|_c on|l l|s e|v e|a s|_w as|_a re|_a s|_p r|_pr o|c h|_th is
u r|m e|n t|k e|l y|t i|ti on|a y|w n|_n o|_no t|_h a|_ha ve|_w or|_wor d|_t i|_ti me
""".replace("\n", "|").strip("|").split("|")

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA_TURNS = (
    "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' "
    "else message['role']) + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


@dataclass
class Vocabulary:
    """The tokenizer keys of a GGUF. Texts are unique; an id is an index."""

    model: str  # tokenizer.ggml.model
    pre: str
    texts: list[bytes] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    merges: list[str] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)  # bos, eos, ... -> token
    flags: dict[str, bool] = field(default_factory=dict)
    character_map: bytes = b""  # of Unigram: what becomes of characters first
    chat_template: str | None = None

    def add(self, text: str, type_: gguf.TokenType, score: float = 0.0) -> int:
        encoded = text.encode()
        if encoded in self.texts:
            return self.texts.index(encoded)
        self.texts.append(encoded)
        self.types.append(int(type_))
        self.scores.append(score)
        return len(self.texts) - 1

    def write(self, writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model(self.model)
        writer.add_tokenizer_pre(self.pre)
        writer.add_token_list(self.texts)
        writer.add_token_types(self.types)
        if self.merges:
            writer.add_token_merges(self.merges)
        else:
            writer.add_token_scores(self.scores)
        for key, value in self.ids.items():
            writer.add_uint32(f"tokenizer.ggml.{key}_token_id", value)
        for key, flag in self.flags.items():
            writer.add_bool(f"tokenizer.ggml.{key}", flag)
        if self.character_map:
            writer.add_precompiled_charsmap(self.character_map)
        if self.chat_template:
            writer.add_chat_template(self.chat_template)


def sentence_piece(chat: bool) -> Vocabulary:
    """As Llama 2 has it."""
    v = Vocabulary("llama", "default")
    unknown = v.add("<unk>", gguf.TokenType.UNKNOWN)
    bos = v.add("<s>", gguf.TokenType.CONTROL)
    eos = v.add("</s>", gguf.TokenType.CONTROL)
    v.ids = {"bos": bos, "eos": eos, "unknown": unknown}
    v.flags = {"add_bos_token": True, "add_space_prefix": True}
    if chat:
        v.add("<|im_start|>", gguf.TokenType.CONTROL)
        v.ids["eot"] = v.add("<|im_end|>", gguf.TokenType.CONTROL)
        v.chat_template = CHATML
    _add_pieces(v)
    return v


def gemma() -> Vocabulary:
    """As Gemma 3 has it: no space in front, line breaks are tokens."""
    v = Vocabulary("llama", "default")
    for name, text in [("padding", "<pad>"), ("eos", "<eos>"), ("bos", "<bos>")]:
        v.ids[name] = v.add(text, gguf.TokenType.CONTROL)
    v.ids["unknown"] = v.add("<unk>", gguf.TokenType.UNKNOWN)
    v.add("<start_of_turn>", gguf.TokenType.CONTROL)
    v.ids["eot"] = v.add("<end_of_turn>", gguf.TokenType.CONTROL)
    v.flags = {"add_bos_token": True, "add_eos_token": False, "add_space_prefix": False}
    v.chat_template = GEMMA_TURNS
    v.add("\n", gguf.TokenType.NORMAL, -1.0)
    _add_pieces(v)
    return v


def byte_pairs(infill: bool = False) -> Vocabulary:
    """As Qwen has it: byte pairs, ChatML, no beginning-of-sequence token; for code with marks around a gap."""
    v = Vocabulary("gpt2", "qwen2")
    letters = _byte_letters()
    for byte in range(256):
        v.add(letters[byte], gguf.TokenType.NORMAL)
    for pair in MERGES:
        left, right = (part.replace("_", letters[ord(" ")]) for part in pair.split(" "))
        v.merges.append(f"{left} {right}")
        v.add(left + right, gguf.TokenType.NORMAL)
    v.ids["padding"] = v.add("<|endoftext|>", gguf.TokenType.CONTROL)
    v.add("<|im_start|>", gguf.TokenType.CONTROL)
    v.ids["eos"] = v.add("<|im_end|>", gguf.TokenType.CONTROL)
    if infill:
        for name in ("fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep"):
            v.add(f"<|{name}|>", gguf.TokenType.CONTROL)
    v.flags["add_bos_token"] = False
    v.chat_template = CHATML
    return v


def _add_pieces(v: Vocabulary) -> None:
    for byte in range(256):
        v.add(f"<0x{byte:02X}>", gguf.TokenType.BYTE)
    space = "\u2581"
    for rank, pair in enumerate(MERGES):
        v.add(pair.replace(" ", "").replace("_", space), gguf.TokenType.NORMAL, -1.0 - rank)
    for code in range(ord(" "), 127):
        v.add(chr(code).replace(" ", space), gguf.TokenType.NORMAL, -1000.0 - code)


def _byte_letters() -> list[str]:
    """The printable stand-in of each byte in byte-pair vocabularies (GPT-2's table)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [""] * 256
    for byte in printable:
        letters[byte] = chr(byte)
    for offset, byte in enumerate(b for b in range(256) if not letters[b]):
        letters[byte] = chr(256 + offset)
    return letters
