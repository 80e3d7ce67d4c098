// Small vocabularies of the rarer kinds, made in memory, for tests.
#pragma once

#include <map>

#include "text/test_vocabularies.h"

namespace forerun {

inline std::vector<TestToken> byte_tokens() {
  std::vector<TestToken> tokens;
  const char* hex = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    tokens.push_back({std::string("<0x") + hex[b >> 4] + hex[b & 15] + ">", kByte});
  }
  return tokens;
}

inline gguf_context_ptr make_kind(const char* model, const std::vector<TestToken>& tokens) {
  gguf_context_ptr gguf(gguf_init_empty());
  gguf_set_val_str(gguf.get(), "general.architecture", "llama");
  gguf_set_val_str(gguf.get(), "tokenizer.ggml.model", model);
  set_tokens(gguf.get(), tokens);
  return gguf;
}

// WordPiece: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, then words and what follows inside of words.
inline std::vector<TestToken> word_piece_tokens() {
  std::vector<TestToken> tokens = {
      {"[PAD]", kControl}, {"[UNK]", kUnknown}, {"[CLS]", kControl}, {"[SEP]", kControl}};
  for (const char* text :
       {"▁hello", "▁world", "▁the", "▁hel", "lo", "ing", "▁un", "able", "▁,", "▁.", "▁漢", "▁x", "e"}) {
    tokens.push_back({text});
  }
  return tokens;
}

inline gguf_context_ptr make_word_piece() {
  gguf_context_ptr gguf = make_kind("bert", word_piece_tokens());
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.unknown_token_id", 1);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.bos_token_id", 2);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.seperator_token_id", 3);
  return gguf;
}

// Unigram's map of characters, each state of it in a block of its own.
inline std::vector<uint8_t> character_map(const std::map<std::string, std::string>& replacements) {
  std::string texts;
  std::vector<uint32_t> places(512);
  std::map<std::string, uint32_t> states = {{"", 256}};
  places[0] = 256 << 10;
  for (const auto& [from, to] : replacements) {
    for (size_t n = 1; n <= from.size(); ++n) {
      const std::string begin = from.substr(0, n);
      if (states.contains(begin)) continue;
      const auto next = static_cast<uint32_t>(places.size());
      places.resize(places.size() + 256);
      const auto byte = static_cast<unsigned char>(from[n - 1]);
      const uint32_t place = states[begin.substr(0, n - 1)] ^ byte;
      places[place] = (place ^ next) << 10 | byte;
      states[begin] = next;
    }
    const uint32_t place =
        states[from.substr(0, from.size() - 1)] ^ static_cast<unsigned char>(from.back());
    places[place] |= 1U << 8;
    places[states[from]] = 1U << 31 | static_cast<uint32_t>(texts.size());
    texts += to + '\0';
  }
  std::vector<uint8_t> bytes;
  const auto add = [&](uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(number >> shift));
  };
  add(static_cast<uint32_t>(places.size() * 4));
  for (const uint32_t place : places) add(place);
  bytes.insert(bytes.end(), texts.begin(), texts.end());
  return bytes;
}

// Unigram: <pad> 0, </s> 1, <unk> 2, then pieces and a user-defined token.
inline std::vector<TestToken> unigram_tokens() {
  std::vector<TestToken> tokens = {{"<pad>", kControl}, {"</s>", kControl}, {"<unk>", kUnknown}};
  float score = -2;
  for (const char* text : {"▁", "▁hello", "▁the", "▁wor", "ld", "he", "l", "o", "e", "h", "w", "r", "d",
                           "fi", "f", "i", "é", "漢"}) {
    tokens.push_back({text, kNormal, score});
    score -= 0.5F;
  }
  tokens.push_back({"<tool>", kUserDefined});
  return tokens;
}

inline gguf_context_ptr make_unigram() {
  gguf_context_ptr gguf = make_kind("t5", unigram_tokens());
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.eos_token_id", 1);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.unknown_token_id", 2);
  gguf_set_val_bool(gguf.get(), "tokenizer.ggml.add_eos_token", true);
  gguf_set_val_bool(gguf.get(), "tokenizer.ggml.add_space_prefix", true);
  const std::vector<uint8_t> map = character_map({{"ﬁ", "fi"}, {"\t", " "}, {"É", "é"}, {"①", "l"}});
  gguf_set_arr_data(gguf.get(), "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8, map.data(),
                    map.size());
  return gguf;
}

// RWKV: <s> 0, all bytes, then pieces.
inline std::vector<TestToken> rwkv_tokens() {
  std::vector<TestToken> tokens = {{"<s>", kControl}};
  const char* hex = "0123456789abcdef";
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    const bool is_plain = b > 0x20 && b < 0x7F && c != '\\';
    tokens.push_back({is_plain ? std::string(1, c) : std::string("\\x") + hex[b >> 4] + hex[b & 15]});
  }
  for (const char* text : {"hello", " world", " the", "\\n\\n", "\\xe6\\xbc", "漢", "he", " w"})
    tokens.push_back({text});
  return tokens;
}

inline gguf_context_ptr make_rwkv() {
  gguf_context_ptr gguf = make_kind("rwkv", rwkv_tokens());
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.eos_token_id", 0);
  return gguf;
}

// PLaMo-2: four special tokens, all bytes, then pieces.
inline std::vector<TestToken> plamo2_tokens() {
  std::vector<TestToken> tokens = {{"<|plamo:unk|>", kUnknown},
                                   {"<|plamo:bos|>", kControl},
                                   {"<|plamo:eos|>", kControl},
                                   {"<|plamo:pad|>", kControl}};
  for (const TestToken& token : byte_tokens()) tokens.push_back(token);
  float score = -3;
  for (const char* text :
       {"hello", " world", " the", "he", "llo", "l", "o", "h", "e", " ", "w", "漢", "漢字", "\n"}) {
    tokens.push_back({text, kNormal, score});
    score -= 0.25F;
  }
  return tokens;
}

inline gguf_context_ptr make_plamo2() {
  gguf_context_ptr gguf = make_kind("plamo2", plamo2_tokens());
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.bos_token_id", 1);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.eos_token_id", 2);
  return gguf;
}

}  // namespace forerun
