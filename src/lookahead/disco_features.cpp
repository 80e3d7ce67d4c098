#include "lookahead/disco_features.h"

#include <cmath>

namespace forerun {

DiscoFeatures DiscoView::features(const DraftedToken& token) {
  DiscoFeatures features{};
  select_top(token.logits, kDiscoProbabilities, scratch_, likeliest_);
  for (size_t i = 0; i < likeliest_.size(); ++i) {
    const auto below = static_cast<double>(clean(likeliest_[i].logit) - token.max_logit);
    features[i] = static_cast<float>(std::exp(below) / token.total);
  }
  features[kDiscoProbabilities] =
      static_cast<float>(entropy(token.logits, token.max_logit, token.total));
  features[kDiscoProbabilities + 1] = std::log1p(static_cast<float>(token.n_answer));
  return features;
}

}  // namespace forerun
