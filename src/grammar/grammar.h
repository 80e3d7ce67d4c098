// Grammars in llama.cpp's GBNF that answers follow, through libllama.
#pragma once

#include <forerun/generation_options.h>

#include <memory>

#include "sampling/constraint.h"
#include "text/vocabulary.h"

namespace forerun {

// Where an answer begins. Throws Error{kInvalidArgument} where the grammar cannot be parsed. The
// vocabulary is copied.
std::shared_ptr<const Constraint> start_of(const Grammar& grammar, const Vocabulary& vocabulary);

}  // namespace forerun
