// How one vector is made of those that a text's tokens have.
#pragma once

namespace forerun {

enum class Pooling {
  kNone,   // each token keeps its own
  kMean,   // the mean of all
  kFirst,  // that of the first token
  kLast,   // that of the last token, which has seen all others
};

}  // namespace forerun
