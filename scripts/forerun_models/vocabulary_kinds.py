"""Vocabularies of the rarer kinds for tiny models: WordPiece, Unigram, RWKV's and PLaMo-2's.

Their words are those that the merges of vocabulary.py come to.
"""

import struct

import gguf

from .vocabulary import CHATML, MERGES, Vocabulary

_SPACE = "\u2581"
# Characters that Unigram's map changes, as Unicode's compatibility forms do.
_CHARACTER_MAP = {"\t": " ", "\n": " ", "\u00a0": " ", "\u2026": "...", "\ufb01": "fi", "\uff21": "A"}


def word_piece() -> Vocabulary:
    """As BERT has it: words begin with a space here, and go on without."""
    v = Vocabulary("bert", "default")
    v.ids["padding"] = v.add("[PAD]", gguf.TokenType.CONTROL)
    v.ids["unknown"] = v.add("[UNK]", gguf.TokenType.UNKNOWN)
    v.ids["bos"] = v.add("[CLS]", gguf.TokenType.CONTROL)
    v.ids["seperator"] = v.ids["eos"] = v.add("[SEP]", gguf.TokenType.CONTROL)
    for word in _words(_SPACE):
        v.add(word, gguf.TokenType.NORMAL)
    for code in range(ord("!"), 127):
        if not chr(code).isupper():
            v.add(_SPACE + chr(code), gguf.TokenType.NORMAL)
            v.add(chr(code), gguf.TokenType.NORMAL)
    return v


def unigram() -> Vocabulary:
    """As T5 has it."""
    v = Vocabulary("t5", "default")
    v.ids["padding"] = v.add("<pad>", gguf.TokenType.CONTROL)
    v.ids["eos"] = v.add("</s>", gguf.TokenType.CONTROL)
    v.ids["unknown"] = v.add("<unk>", gguf.TokenType.UNKNOWN)
    v.flags = {"add_eos_token": False, "add_space_prefix": True, "remove_extra_whitespaces": True}
    v.character_map = character_map(_CHARACTER_MAP)
    for rank, word in enumerate(_words(_SPACE)):
        v.add(word, gguf.TokenType.NORMAL, -3.0 - 0.05 * rank)
    for code in range(ord(" "), 127):
        v.add(chr(code).replace(" ", _SPACE), gguf.TokenType.NORMAL, -10.0)
    return v


def rwkv() -> Vocabulary:
    """As RWKV's World models have it: texts of tokens are written as Python would."""
    v = Vocabulary("rwkv", "default")
    v.ids["bos"] = v.ids["eos"] = v.add("<s>", gguf.TokenType.CONTROL)
    for byte in range(256):
        is_plain = ord(" ") < byte < 127 and chr(byte) != "\\"
        v.add(chr(byte) if is_plain else f"\\x{byte:02x}", gguf.TokenType.NORMAL)
    for word in _words(" "):
        v.add(word, gguf.TokenType.NORMAL)
    return v


def plamo2() -> Vocabulary:
    v = Vocabulary("plamo2", "default")
    for name, kind in [("unknown", gguf.TokenType.UNKNOWN), ("bos", gguf.TokenType.CONTROL),
                       ("eos", gguf.TokenType.CONTROL), ("padding", gguf.TokenType.CONTROL)]:  # fmt: skip
        v.ids[name] = v.add(f"<|plamo:{name}|>", kind)
    v.add("<|im_start|>", gguf.TokenType.CONTROL)
    v.ids["eot"] = v.add("<|im_end|>", gguf.TokenType.CONTROL)
    v.chat_template = CHATML
    for byte in range(256):
        v.add(f"<0x{byte:02X}>", gguf.TokenType.BYTE)
    for rank, word in enumerate(_words(" ")):
        v.add(word, gguf.TokenType.NORMAL, -3.0 - 0.05 * rank)
    for code in range(ord(" "), 127):
        v.add(chr(code), gguf.TokenType.NORMAL, -10.0)
    return v


def character_map(replacements: dict[str, str]) -> bytes:
    """SentencePiece's compiled map: a double array with a block of 256 places for each state, and the texts."""
    places = [0] * 512
    places[0] = 256 << 10
    states = {b"": 256}
    texts = b""
    for source, target in sorted((s.encode(), t.encode()) for s, t in replacements.items()):
        place = 0
        for n in range(1, len(source) + 1):
            place = states[source[: n - 1]] ^ source[n - 1]
            if source[:n] not in states:
                states[source[:n]] = len(places)
                places[place] = (place ^ len(places)) << 10 | source[n - 1]
                places += [0] * 256
        places[place] |= 1 << 8
        places[states[source]] = 1 << 31 | len(texts)
        texts += target + b"\0"
    return struct.pack(f"<I{len(places)}I", 4 * len(places), *places) + texts


def _words(space: str) -> list[str]:
    return [pair.replace(" ", "").replace("_", space) for pair in MERGES]
