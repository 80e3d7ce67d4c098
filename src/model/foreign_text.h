// A model reads another's text, in which there may be tokens that it does not have.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "model/model.h"

namespace forerun {

// The token, or the model's first one for a token that it does not have. That is wrong, and good
// enough for who only guesses what follows.
inline TokenId known_tokens(const Model& model, TokenId token) {
  return to_int(token) < model.config().n_vocab ? token : TokenId{0};
}

inline std::vector<TokenId> known_tokens(const Model& model, std::span<const TokenId> text) {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size());
  for (const TokenId token : text) tokens.push_back(known_tokens(model, token));
  return tokens;
}

}  // namespace forerun
