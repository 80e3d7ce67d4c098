// A model reads another's text, in which there may be tokens that it does not have.
#pragma once

#include "core/ids.h"
#include "model/model.h"

namespace forerun {

// The token, or the model's first one for a token that it does not have. That is wrong, and good
// enough for who only guesses what follows.
inline TokenId readable(const Model& model, TokenId token) {
  return to_int(token) < model.config().n_vocab ? token : TokenId{0};
}

}  // namespace forerun
