// The vector of a text, put together while the text is read.
//
// Not thread-safe.
#pragma once

#include <forerun/pooling.h>

#include <span>
#include <vector>

namespace forerun {

class TextEmbedding {
 public:
  // Of a text of so many tokens.
  TextEmbedding(Pooling pooling, size_t n_tokens) : pooling_(pooling), n_tokens_(n_tokens) {}

  // Whether the vector of the token at this place is needed.
  bool wants(size_t place) const;
  // The vectors of those tokens, in the order of the text. All have one size.
  void add(std::span<const float> vector);
  // The text begins anew.
  void clear() { sum_.clear(); }

  // All were added. With Pooling::kNone one vector after the other.
  std::vector<float> result() const;

 private:
  Pooling pooling_;
  size_t n_tokens_;
  std::vector<double> sum_;
};

}  // namespace forerun
