// Drafts from what a request comes with, beside its prompt.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "request/request_view.h"

namespace forerun {

// How sure these are of the next token, where they were right before: a text may depart from what was
// expected, and the model may divide what is forced into other tokens.
constexpr float kGivenRight = 0.95f;

// Drafts what the grammar of an answer forces: the rest of a key of JSON, once it has begun.
class ForcedDrafter final : public RequestDrafter {
 public:
  // The request, which has a grammar, outlives it.
  explicit ForcedDrafter(const RequestView& request) : request_(request) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const std::vector<TokenId> forced = request_.state().constraint()->forced();
    tree.add_chain(limits.fitting(forced), {.score = kGivenRight, .source = DraftSource::kGrammar},
                   kGivenRight);
  }

 private:
  const RequestView& request_;
};

// Drafts from a text that the caller expects: a file that is to be returned with a few changes. The
// draft goes on where the answer stands in that text. Where the answer departs from it, the place is
// looked for where the two meet again.
class PredictionDrafter final : public RequestDrafter {
 public:
  explicit PredictionDrafter(std::span<const TokenId> prediction)
      : prediction_(prediction.begin(), prediction.end()) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (is_lost_) return;
    const auto expected = std::span(prediction_).subspan(at_);
    tree.add_chain(
        limits.fitting(expected),
        {.score = kGivenRight, .source = DraftSource::kPrediction, .match_length = n_matched_},
        kGivenRight);
  }

  void append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) {
      answer_.push_back(token);
      if (!is_lost_ && at_ < prediction_.size() && prediction_[at_] == token) {
        ++at_;
        ++n_matched_;
      } else {
        find_place();
      }
    }
  }

 private:
  // Tokens of the answer that must be found again, one after the other, and how many are looked for at
  // most.
  static constexpr size_t kLeastCompared = 2;
  static constexpr size_t kMostCompared = 8;

  // Behind the longest end of the answer that the prediction has, the nearest behind the old place.
  void find_place() {
    is_lost_ = true;
    n_matched_ = 0;
    const auto begin = prediction_.begin(), end = prediction_.end();
    for (size_t n = std::min(kMostCompared, answer_.size()); n >= kLeastCompared && is_lost_; --n) {
      const auto tokens = answer_.end() - static_cast<ptrdiff_t>(n);
      auto found = std::search(begin + static_cast<ptrdiff_t>(at_), end, tokens, answer_.end());
      if (found == end) found = std::search(begin, end, tokens, answer_.end());
      if (found == end) continue;
      is_lost_ = false;
      at_ = static_cast<size_t>(found - begin) + n;
      n_matched_ = static_cast<int>(n);
    }
  }

  std::vector<TokenId> prediction_;
  std::vector<TokenId> answer_;
  size_t at_ = 0;  // the token of the prediction that is expected, or was before its place was lost
  bool is_lost_ = false;
  int n_matched_ = 0;
};

}  // namespace forerun
