// The rules of a grammar, as libllama's parser reads them from its text.
#pragma once

#include <llama-grammar.h>

#include <cstdint>
#include <string>

#include "text/vocabulary.h"

namespace forerun {

// Rules refer to each other by number and each ends with an element of its own; all that are referred to
// are there, and none begins with itself.
struct GrammarRules {
  llama_grammar_rules rules;
  uint32_t root = 0;
};

// An alternative of a rule, or the rule, ends there.
inline bool is_end(const llama_grammar_element& element) {
  return element.type == LLAMA_GRETYPE_END || element.type == LLAMA_GRETYPE_ALT;
}

// Throws Error{kInvalidArgument}, which says where it makes no sense, or that it is too large.
GrammarRules read_grammar(const std::string& text, const Vocabulary& vocabulary);

}  // namespace forerun
