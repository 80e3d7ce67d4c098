#include "engine/text_embedding.h"

#include "core/check.h"

namespace forerun {

bool TextEmbedding::wants(size_t place) const {
  switch (pooling_) {
    case Pooling::kNone:
    case Pooling::kMean: return true;
    case Pooling::kFirst: return place == 0;
    case Pooling::kLast: return place + 1 == n_tokens_;
  }
  return false;
}

void TextEmbedding::add(std::span<const float> vector) {
  if (pooling_ == Pooling::kNone) {
    sum_.insert(sum_.end(), vector.begin(), vector.end());
    return;
  }
  sum_.resize(vector.size());
  for (size_t i = 0; i < vector.size(); ++i) sum_[i] += static_cast<double>(vector[i]);
}

std::vector<float> TextEmbedding::result() const {
  CHECK(!sum_.empty());
  const double share = pooling_ == Pooling::kMean ? 1.0 / static_cast<double>(n_tokens_) : 1.0;
  std::vector<float> vector;
  vector.reserve(sum_.size());
  for (const double sum : sum_) vector.push_back(static_cast<float>(sum * share));
  return vector;
}

}  // namespace forerun
