// Looks at a grammar's text before libllama does, which says what is wrong with one to standard error,
// with all of it, and recurses as deep as it is nested.
#pragma once

#include <string>

#include "text/vocabulary.h"

namespace forerun {

// Throws Error{kInvalidArgument}, which says where it makes no sense, or that it is too large.
void check_grammar_text(const std::string& text, const Vocabulary& vocabulary);

}  // namespace forerun
