// DISCO (Mamou et al., 2024): goes on while a classifier holds the drafted token for likely to be
// taken, up to a length. Both numbers are the classifier's own, found on validation prompts.
#pragma once

#include "lookahead/disco_classifier.h"
#include "lookahead/lookahead.h"

namespace forerun {

class DiscoLookahead final : public LookaheadPolicy {
 public:
  explicit DiscoLookahead(DiscoClassifier classifier) : classifier_(std::move(classifier)) {}

  std::unique_ptr<Lookahead> begin() override;
  std::optional<int> longest() const override { return classifier_.rule.max_tokens; }
  // Other numbers from now on.
  void set_rule(const DiscoRule& rule) { classifier_.rule = rule; }

 private:
  DiscoClassifier classifier_;
};

}  // namespace forerun
