// What a public Tokenizer is made of.
#pragma once

#include <forerun/tokenizer.h>

#include <optional>

#include "text/chat_template.h"
#include "text/vocabulary.h"

namespace forerun {

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  std::optional<ChatTemplate> chat_template;  // nullopt: the model has none
};

}  // namespace forerun
