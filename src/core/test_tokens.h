// Texts of tokens, for tests.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/ids.h"

namespace forerun {

using Tokens = std::vector<TokenId>;

inline Tokens ids(std::initializer_list<int> values) {
  Tokens tokens;
  for (const int value : values) tokens.push_back(TokenId{value});
  return tokens;
}

}  // namespace forerun
