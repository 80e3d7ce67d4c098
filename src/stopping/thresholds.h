// Rules that compare tokens' probabilities with a threshold, which may follow what becomes of drafts,
// from request to request.
#pragma once

#include <cstddef>
#include <vector>

#include "stopping/stopping_rule.h"

namespace forerun {

// Stops behind a token that is less probable.
class ConfidenceThreshold : public StoppingRule {
 public:
  explicit ConfidenceThreshold(double first) : value_(first) {}
  double value() const { return value_; }
  bool goes_on(const DraftedToken& token) override { return token.probability >= value_; }

 protected:
  double value_;
};

// Draft & Verify's threshold (Zhang et al., ACL 2024): up while fewer than nine in ten drafted
// tokens are taken, down while more are and drafts could be longer. As published, but that it
// stays between 0 and 1. It moves by 0.001 a draft.
class AdaptiveThreshold final : public ConfidenceThreshold {
 public:
  using ConfidenceThreshold::ConfidenceThreshold;
  void observe(const ChainOutcome& outcome) override;

 private:
  double accepted_ = 0;  // share of drafted tokens, the latest drafts above all
};

// The threshold that Hugging Face's assisted generation finds for itself: the one which, on the
// tokens so far, is cheapest if a token that should have been drafted costs three times one that
// should not have. Of the latest `kKept` tokens here, of all of a call's there.
class RocThreshold final : public ConfidenceThreshold {
 public:
  using ConfidenceThreshold::ConfidenceThreshold;
  void observe(const ChainOutcome& outcome) override;

 private:
  static constexpr size_t kKept = 512;
  struct Seen {
    double probability;
    bool agreed;
  };
  std::vector<Seen> seen_;  // the latest is the last
};

}  // namespace forerun
