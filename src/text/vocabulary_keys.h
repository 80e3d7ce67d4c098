// The metadata that describes a vocabulary, with the types that libllama wants. All throw
// Error{kInvalidFile} where a key is of another.
#pragma once

#include <gguf.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace forerun::vocabulary_keys {

inline constexpr const char* kModel = "tokenizer.ggml.model";
inline constexpr const char* kPre = "tokenizer.ggml.pre";
inline constexpr const char* kTokens = "tokenizer.ggml.tokens";
inline constexpr const char* kTypes = "tokenizer.ggml.token_type";
inline constexpr const char* kScores = "tokenizer.ggml.scores";
inline constexpr const char* kMerges = "tokenizer.ggml.merges";
inline constexpr const char* kBos = "tokenizer.ggml.bos_token_id";
inline constexpr const char* kEos = "tokenizer.ggml.eos_token_id";
inline constexpr const char* kSpacePrefix = "tokenizer.ggml.add_space_prefix";
inline constexpr const char* kUnknown = "tokenizer.ggml.unknown_token_id";
inline constexpr const char* kSeparator = "tokenizer.ggml.seperator_token_id";  // as libllama spells it
inline constexpr const char* kCharacterMap = "tokenizer.ggml.precompiled_charsmap";
inline constexpr const char* kMergesSpaces = "tokenizer.ggml.remove_extra_whitespaces";
inline constexpr const char* kLowercase = "tokenizer.ggml.normalizer.lowercase";
inline constexpr const char* kStripsAccents = "tokenizer.ggml.normalizer.strip_accents";

// A string of the file as it can stand in a message: one line, not too long.
std::string in_message(std::string_view text);

// The index of `key` if the file has it, after checking its type.
std::optional<int64_t> find_typed(const gguf_context* gguf, const char* key, gguf_type type);
std::optional<int64_t> find_array(const gguf_context* gguf, const char* key,
                                  std::initializer_list<gguf_type> types);

// An array with an entry per token, or nullptr; more entries are harmless.
const void* per_token(const gguf_context* gguf, const char* key, std::optional<int64_t> id,
                      size_t n_tokens);

// Empty, or `otherwise`, where the file has no such key.
std::string_view string_value(const gguf_context* gguf, const char* key);
bool flag_value(const gguf_context* gguf, const char* key, bool otherwise);

}  // namespace forerun::vocabulary_keys
