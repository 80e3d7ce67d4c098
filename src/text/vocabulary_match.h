// Whether one model's tokens mean to another what they mean to it.
#pragma once

#include <optional>
#include <string>

#include "text/vocabulary.h"

namespace forerun {

// How the vocabularies of a model and of one that drafts for it differ, in words that end an
// error's line; nullopt: a draft's tokens can be taken as they are. Sizes may differ a little,
// since many models are padded; every token that both have is the same text.
std::optional<std::string> vocabulary_difference(const Vocabulary& target, const Vocabulary& draft);

}  // namespace forerun
