// Small vocabularies made in memory, for tests.
#pragma once

#include <ggml-cpp.h>
#include <gguf.h>

#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "text/vocabulary.h"

namespace forerun {

// Token types as GGUF files number them.
enum TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct TestToken {
  std::string text;
  int32_t type = kNormal;
  float score = 0;
};

inline void set_strings(gguf_context* gguf, const char* key, const std::vector<std::string>& values) {
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  gguf_set_arr_str(gguf, key, pointers.data(), pointers.size());
}

inline void set_tokens(gguf_context* gguf, const std::vector<TestToken>& tokens) {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;
  for (const TestToken& token : tokens) {
    texts.push_back(token.text);
    types.push_back(token.type);
    scores.push_back(token.score);
  }
  set_strings(gguf, "tokenizer.ggml.tokens", texts);
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
}

// SentencePiece: <unk> 0, <s> 1, </s> 2, byte tokens 3 to 258, then text tokens,
// a user-defined token and a control token.
inline std::vector<TestToken> sentence_piece_tokens() {
  std::vector<TestToken> tokens = {{"<unk>", kUnknown}, {"<s>", kControl}, {"</s>", kControl}};
  const char* hex = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    tokens.push_back({std::string("<0x") + hex[b >> 4] + hex[b & 15] + ">", kByte});
  }
  float score = -1;
  for (const char* text : {"▁t", "he", "▁the", "▁a",     "in", "▁he", "ll", "▁hell", "▁hello", "▁w",
                           "or", "ld", "▁wor", "▁world", "▁",  "e",   "t",  "a",     "h",      "l",
                           "o",  "w",  "r",    "d",      "n",  "i",   "é",  "漢"}) {
    tokens.push_back({text, kNormal, score});
    score -= 1;
  }
  tokens.push_back({"<tool>", kUserDefined});
  tokens.push_back({"<end_of_turn>", kControl});
  return tokens;
}

inline gguf_context_ptr make_sentence_piece() {
  gguf_context_ptr gguf(gguf_init_empty());
  gguf_set_val_str(gguf.get(), "general.architecture", "llama");
  gguf_set_val_str(gguf.get(), "general.name", "test");
  gguf_set_val_str(gguf.get(), "tokenizer.ggml.model", "llama");
  set_tokens(gguf.get(), sentence_piece_tokens());
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.bos_token_id", 1);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.eos_token_id", 2);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.unknown_token_id", 0);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.padding_token_id", 100'000);
  gguf_set_val_bool(gguf.get(), "tokenizer.ggml.add_bos_token", true);
  gguf_set_val_bool(gguf.get(), "tokenizer.ggml.add_space_prefix", true);
  return gguf;
}

// The character that stands for a byte in byte-pair vocabularies.
inline std::string byte_symbol(int byte) {
  const auto printable = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD); };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

inline const std::vector<std::string>& byte_pair_merges() {
  static const std::vector<std::string> merges = {"h e", "l l",   "he ll",   "hell o", "Ġ w",  "o r",
                                                  "l d", "Ġw or", "Ġwor ld", "Ġ t",    "Ġt he"};
  return merges;
}

// Byte-pair: bytes 0 to 255, then the results of the merges, <|im_start|>,
// <|im_end|> and a user-defined token.
inline std::vector<TestToken> byte_pair_tokens() {
  std::vector<TestToken> tokens;
  for (int b = 0; b < 256; ++b) tokens.push_back({byte_symbol(b)});
  for (std::string merge : byte_pair_merges()) {
    merge.erase(merge.find(' '), 1);
    tokens.push_back({merge});
  }
  tokens.push_back({"<|im_start|>", kControl});
  tokens.push_back({"<|im_end|>", kControl});
  tokens.push_back({"<tool>", kUserDefined});
  return tokens;
}

inline gguf_context_ptr make_byte_pair(const char* pre = "smollm") {
  gguf_context_ptr gguf(gguf_init_empty());
  const auto n_tokens = static_cast<uint32_t>(byte_pair_tokens().size());
  gguf_set_val_str(gguf.get(), "general.architecture", "llama");
  gguf_set_val_str(gguf.get(), "tokenizer.ggml.model", "gpt2");
  gguf_set_val_str(gguf.get(), "tokenizer.ggml.pre", pre);
  set_tokens(gguf.get(), byte_pair_tokens());
  set_strings(gguf.get(), "tokenizer.ggml.merges", byte_pair_merges());
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.bos_token_id", n_tokens - 3);
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.eos_token_id", n_tokens - 2);
  gguf_set_val_bool(gguf.get(), "tokenizer.ggml.add_bos_token", false);
  return gguf;
}

inline Vocabulary load(const gguf_context_ptr& gguf) {
  return Vocabulary::load(GgufMetadata(gguf.get()));
}

}  // namespace forerun
