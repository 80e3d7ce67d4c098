// Checks a GGUF's tokenizer before libllama sees it.
//
// libllama aborts the process on some damaged vocabularies and silently assumes
// something wrong on others. What it reads when it loads a vocabulary is checked
// here first, in one pass over the tokens that takes some milliseconds for a
// quarter of a million of them. What passes can be loaded and used without an
// abort.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/metadata.h"

namespace forerun {

enum class TokenizerKind {
  kSentencePiece,  // "llama": merges by score; unknown characters become byte tokens
  kBytePair,       // "gpt2", "gemma4": merges by rank, after splitting into words
  kWordPiece,      // "bert": the longest pieces of words, of which case and accents may be lost
  kUnigram,        // "t5": the likeliest pieces, after a map has changed characters
  kRwkv,           // "rwkv": the longest pieces, of bytes
  kPlamo2,         // "plamo2": the likeliest pieces; unknown characters become byte tokens
};

// What the check learns on the way.
struct VocabularyFacts {
  TokenizerKind kind;
  size_t n_tokens;
  // Tokenizing puts a space in front of a text; making text of tokens removes it.
  bool adds_space_prefix;
  // The file names these tokens. Where it does not, libllama assumes ids, which in
  // byte-pair vocabularies are those of ordinary tokens.
  bool names_bos;
  bool names_eos;
  // Equal for two files if every text has the same tokens in both and every token
  // the same text. Special ids and the chat template do not count.
  uint64_t fingerprint;
};

// Throws Error{kInvalidFile} naming the key that is wrong, or Error{kUnsupported}
// for a kind of tokenizer that forerun does not use.
VocabularyFacts check_vocabulary(const GgufMetadata& metadata);

}  // namespace forerun
