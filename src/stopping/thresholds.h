// Stopping rules that are a number to compare with.
#pragma once

#include <cstddef>
#include <vector>

#include "stopping/stopping_rule.h"

namespace forerun {

// So many tokens each time.
class FixedLength final : public StoppingRule {
 public:
  explicit FixedLength(int n_tokens) : n_tokens_(n_tokens) {}
  std::unique_ptr<RequestStoppingRule> begin() override;
  std::optional<int> longest() const override { return n_tokens_; }

 private:
  int n_tokens_;
};

// Hugging Face's dynamic heuristic (Gante, 2023): two more where all were taken, else one less.
// Its number goes on from request to request, as theirs does.
class HeuristicLength final : public StoppingRule {
 public:
  explicit HeuristicLength(int first) : n_tokens_(first) {}
  std::unique_ptr<RequestStoppingRule> begin() override;
  int n_tokens() const { return n_tokens_; }
  void observe(const ChainOutcome& outcome);

 private:
  int n_tokens_;
};

// Stops behind a token that is less probable.
class ConfidenceThreshold final : public StoppingRule {
 public:
  explicit ConfidenceThreshold(double threshold) : threshold_(threshold) {}
  std::unique_ptr<RequestStoppingRule> begin() override;

 private:
  double threshold_;
};

// Draft & Verify's threshold (Zhang et al., ACL 2024): up while fewer than nine in ten drafted
// tokens are taken, down while more are and drafts could be longer. As published, but that it
// stays between 0 and 1. It moves by 0.001 a draft, so it goes on from request to request.
class AdaptiveThreshold {
 public:
  explicit AdaptiveThreshold(double first) : value_(first) {}

  double value() const { return value_; }
  void observe(const ChainOutcome& outcome);

 private:
  double value_;
  double accepted_ = 0;  // share of drafted tokens, the latest drafts above all
};

class AdaptiveConfidence final : public StoppingRule {
 public:
  explicit AdaptiveConfidence(double first) : threshold_(first) {}
  std::unique_ptr<RequestStoppingRule> begin() override;

 private:
  AdaptiveThreshold threshold_;
};

// The threshold that Hugging Face's assisted generation finds for itself: the one which, on the
// tokens so far, is cheapest if a token that should have been drafted costs three times one that
// should not have. Of the latest `kKept` tokens here, of all of a call's there.
class RocThreshold {
 public:
  explicit RocThreshold(double first) : value_(first) {}

  double value() const { return value_; }
  // A token of this probability was taken or not.
  void observe(double probability, bool agreed);
  // Finds the threshold anew, if it has seen enough.
  void update();

 private:
  static constexpr size_t kKept = 512;
  struct Seen {
    double probability;
    bool agreed;
  };
  double value_;
  std::vector<Seen> seen_;  // a ring
  size_t next_ = 0;
  std::vector<Seen> sorted_;
};

class RocConfidence final : public StoppingRule {
 public:
  explicit RocConfidence(double first) : threshold_(first) {}
  std::unique_ptr<RequestStoppingRule> begin() override;

 private:
  RocThreshold threshold_;
};

// DISCO's rival: stops where the perplexity of the draft so far, the inverse of the mean
// probability of its tokens on a logarithmic scale, is above a threshold.
class PerplexityThreshold final : public StoppingRule {
 public:
  explicit PerplexityThreshold(double most) : most_(most) {}
  std::unique_ptr<RequestStoppingRule> begin() override;

 private:
  double most_;
};

// The best that knowing when to stop can do: stops behind the first token that will not be taken,
// because it was told the answer. For benchmarks; DISCO's upper bound.
class Oracle final : public StoppingRule {
 public:
  std::unique_ptr<RequestStoppingRule> begin() override;
};

}  // namespace forerun
