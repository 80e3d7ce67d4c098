// What vocabularies of some kinds need besides what all do (vocabulary_check.h), so that libllama can
// use them: the tokens that it falls back to, the map of characters of Unigram, and sizes of what it
// builds of the tokens.
#pragma once

#include <gguf.h>

#include <cstddef>

#include "core/hash.h"
#include "text/vocabulary_check.h"

namespace forerun {

// Throws Error{kInvalidFile}. Adds to `hash` what decides tokens in kinds other than SentencePiece and
// byte-pair.
void check_kind_of_vocabulary(const gguf_context* gguf, TokenizerKind kind, size_t n_tokens,
                              StableHash& hash);

}  // namespace forerun
