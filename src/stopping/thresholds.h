// What stopping rules compare tokens with. Numbers that follow what becomes of drafts (observe())
// go on from request to request.
#pragma once

#include <cstddef>
#include <vector>

#include "stopping/stopping_rule.h"

namespace forerun {

// So many tokens each time.
struct FixedLength {
  int n_tokens;

  bool goes_on(const DraftedToken& token) const { return token.depth < n_tokens; }
  int longest() const { return n_tokens; }
};

// Hugging Face's dynamic heuristic (Gante, 2023): two more where all were taken, else one less.
struct HeuristicLength {
  int n_tokens;  // at first

  bool goes_on(const DraftedToken& token) const { return token.depth < n_tokens; }
  void observe(const ChainOutcome& outcome);
};

// Stops behind a token that is less probable.
struct ConfidenceThreshold {
  double least;

  bool goes_on(const DraftedToken& token) const { return token.probability >= least; }
};

// Draft & Verify's threshold (Zhang et al., ACL 2024): up while fewer than nine in ten drafted
// tokens are taken, down while more are and drafts could be longer. As published, but that it
// stays between 0 and 1. It moves by 0.001 a draft.
class AdaptiveThreshold {
 public:
  explicit AdaptiveThreshold(double first) : value_(first) {}

  double value() const { return value_; }
  bool goes_on(const DraftedToken& token) const { return token.probability >= value_; }
  void observe(const ChainOutcome& outcome);

 private:
  double value_;
  double accepted_ = 0;  // share of drafted tokens, the latest drafts above all
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

// The best that knowing when to stop can do: stops behind the first token that will not be taken,
// because it was told the answer. For benchmarks; DISCO's upper bound.
struct Oracle {
  bool goes_on(const DraftedToken& token) const { return token.token == token.known; }
};

}  // namespace forerun
