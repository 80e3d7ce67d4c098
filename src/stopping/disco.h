// DISCO (Mamou et al., 2024): goes on while a classifier holds the drafted token for likely to be
// taken, up to a length. Both numbers are the classifier's own, found on validation prompts.
#pragma once

#include "stopping/disco_classifier.h"
#include "stopping/stopping_rule.h"

namespace forerun {

class DiscoStopping final : public StoppingRule {
 public:
  explicit DiscoStopping(DiscoClassifier classifier) : classifier_(std::move(classifier)) {}

  std::unique_ptr<RequestStoppingRule> begin() override;
  std::optional<int> longest() const override { return classifier_.rule.max_tokens; }
  // Other numbers from now on.
  void set_rule(const DiscoRule& rule) { classifier_.rule = rule; }

 private:
  DiscoClassifier classifier_;
};

}  // namespace forerun
