// A token of a model's vocabulary.
#pragma once

#include <cstdint>

namespace forerun {

enum class TokenId : int32_t {};  // index into the vocabulary

// Ids are types of their own; this is their number.
template <typename Id>
constexpr int32_t to_int(Id id) {
  return static_cast<int32_t>(id);
}

}  // namespace forerun
