#include "draft/text/given.h"

#include <algorithm>

namespace forerun {
namespace {

// Tokens of the answer that must be found again, one after the other, and how many are looked for at
// most.
constexpr size_t kLeastCompared = 2;
constexpr size_t kMostCompared = 8;
// How sure they are of the next token, where they were right before: a text may depart from what was
// expected, and the model may divide what is forced into other tokens.
constexpr float kRight = 0.95f;

class ForcedDrafter final : public RequestDrafter {
 public:
  explicit ForcedDrafter(const RequestView& request) : request_(request) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const std::vector<TokenId> forced = request_.state().constraint()->forced();
    tree.add_chain(limits.fitting(forced), {.score = kRight, .source = DraftSource::kGrammar}, kRight);
  }

 private:
  const RequestView& request_;
};

class PredictionDrafter final : public RequestDrafter {
 public:
  explicit PredictionDrafter(std::vector<TokenId> prediction) : prediction_(std::move(prediction)) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (is_lost_) return;
    tree.add_chain(limits.fitting(std::span(prediction_).subspan(at_)),
                   {.score = kRight, .source = DraftSource::kPrediction, .match_length = n_matched_},
                   kRight);
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

}  // namespace

std::unique_ptr<RequestDrafter> make_forced_drafter(const RequestView& request) {
  return std::make_unique<ForcedDrafter>(request);
}

std::unique_ptr<RequestDrafter> make_prediction_drafter(std::vector<TokenId> prediction) {
  return std::make_unique<PredictionDrafter>(std::move(prediction));
}

}  // namespace forerun
