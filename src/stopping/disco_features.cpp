#include "stopping/disco_features.h"

#include <cmath>

namespace forerun {

DiscoFeatures DiscoView::features(const DraftedToken& token) {
  DiscoFeatures features{};
  select_top(token.logits, kDiscoProbabilities, scratch_, likeliest_);
  for (size_t i = 0; i < likeliest_.size(); ++i) {
    features[i] = static_cast<float>(token.sums.probability(likeliest_[i].logit));
  }
  features[kDiscoProbabilities] = static_cast<float>(token.sums.entropy);
  features[kDiscoProbabilities + 1] = std::log1p(static_cast<float>(token.n_answer));
  return features;
}

}  // namespace forerun
