// The logits behind a row, as those read them who draw from them: all of them, or the best ones, and
// all on demand.
//
// Where a GPU computes them the whole vocabulary of a row is half a megabyte to copy and to search, and
// mostly a few tokens of it decide. Which those are, and what the softmax over all of them sums up to,
// the GPU finds out itself. Whoever finds that they do not decide asks for all(), so that the
// tokens drawn do not depend on what a view has. (Its sums are added up in an order of the GPU's own:
// they are for guesses.)
//
// A view is a value and as thread-safe as what it looks at, which outlives it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.h"
#include "sampling/vocab_ops.h"

namespace forerun {

// How many of the best there are: the default top-k, 40, and as many as the default penalties may move
// behind them, 64, are fewer.
constexpr size_t kBestLogits = 128;

// What is known of a row without its logits.
struct BestLogits {
  // The best tokens in the order of ScoredToken, none of them -infinity. If there are fewer than
  // kBestLogits, no other token is possible.
  std::span<const ScoredToken> tokens;
  SoftmaxSums sums;  // of all logits
};

// Where all logits of rows can be had. Thread-safe.
class WholeLogits {
 public:
  virtual ~WholeLogits() = default;
  // Stays valid as long as the row does. Throws Error when there is no memory to copy it to.
  virtual std::span<const float> row(size_t place) = 0;
};

class LogitsView {
 public:
  LogitsView() = default;
  // All of them are here.
  LogitsView(std::span<const float> all) : all_(all), n_vocab_(all.size()) {}
  LogitsView(const std::vector<float>& all) : LogitsView(std::span(all)) {}
  // The best of row `place`.
  LogitsView(const BestLogits& best, size_t n_vocab, WholeLogits& whole, size_t place)
      : best_(best), n_vocab_(n_vocab), whole_(&whole), place_(place) {}

  size_t n_vocab() const { return n_vocab_; }
  // Nothing where all are here.
  std::span<const ScoredToken> best() const { return best_.tokens; }
  // n_vocab() logits.
  std::span<const float> all() const;

  // The same for a vocabulary of n tokens: of those that are not there -infinity. What has to be made
  // for that lies in `memory`, which the view needs.
  LogitsView fitted(size_t n, std::vector<float>& memory) const;

  // Some logit is above -infinity.
  SoftmaxSums sums() const;
  float logit(TokenId token) const;
  // The same for a guess: of a token that is not among the best the most that its logit can be.
  float most_of(TokenId token) const;
  // select_top().
  void top(size_t k, SelectionScratch& scratch, std::vector<ScoredToken>& out) const;

 private:
  const ScoredToken* find_best(TokenId token) const;

  std::span<const float> all_;
  BestLogits best_{};
  size_t n_vocab_ = 0;
  WholeLogits* whole_ = nullptr;  // nullptr: all_ has them
  size_t place_ = 0;
  std::vector<float>* memory_ = nullptr;  // for n_vocab_ logits, where the row has fewer
};

}  // namespace forerun
