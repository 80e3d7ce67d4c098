#include "draft/text/prediction.h"

#include <algorithm>
#include <optional>

namespace forerun {
namespace {

// Tokens of the answer that must be found again, one after the other, and how many are looked for at
// most.
constexpr size_t kLeastCompared = 2;
constexpr size_t kMostCompared = 8;
// How sure it is of its next token, where it was right before.
constexpr float kRight = 0.95f;

class PredictionDrafter final : public RequestDrafter {
 public:
  explicit PredictionDrafter(std::vector<TokenId> prediction) : prediction_(std::move(prediction)) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (!at_) return;
    const size_t n = std::min({static_cast<size_t>(std::min(limits.max_nodes, limits.max_depth)),
                               prediction_.size() - std::min(*at_, prediction_.size())});
    int32_t parent = kRoot;
    float score = 1;
    for (size_t i = 0; i < n; ++i) {
      score *= kRight;
      parent = tree.add({.token = prediction_[*at_ + i],
                         .parent = parent,
                         .score = score,
                         .source = DraftSource::kPrediction,
                         .match_length = n_matched_});
    }
  }

  void append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) {
      answer_.push_back(token);
      if (at_ && *at_ < prediction_.size() && prediction_[*at_] == token) {
        ++*at_;
        ++n_matched_;
      } else {
        find_place();
      }
    }
  }

 private:
  // Behind the longest end of the answer that the prediction has, the nearest behind the old place.
  void find_place() {
    const size_t from = at_.value_or(last_);
    last_ = std::min(from, prediction_.size());
    at_ = std::nullopt;
    n_matched_ = 0;
    const size_t most = std::min(kMostCompared, answer_.size());
    for (size_t n = most; n >= kLeastCompared; --n) {
      const auto place = find(std::span(answer_).last(n));
      if (!place) continue;
      at_ = *place + n;
      n_matched_ = static_cast<int>(n);
      return;
    }
  }

  std::optional<size_t> find(std::span<const TokenId> tokens) const {
    const auto begin = prediction_.begin();
    const auto ahead = begin + static_cast<std::ptrdiff_t>(last_);
    auto found = std::search(ahead, prediction_.end(), tokens.begin(), tokens.end());
    if (found == prediction_.end())
      found = std::search(begin, prediction_.end(), tokens.begin(), tokens.end());
    return found != prediction_.end() ? std::optional(static_cast<size_t>(found - begin)) : std::nullopt;
  }

  std::vector<TokenId> prediction_;
  std::vector<TokenId> answer_;
  std::optional<size_t> at_ = 0;  // the token of the prediction that is expected; nullopt: it is lost
  size_t last_ = 0;               // where it was before
  int n_matched_ = 0;
};

}  // namespace

std::unique_ptr<RequestDrafter> make_prediction_drafter(std::vector<TokenId> prediction) {
  return std::make_unique<PredictionDrafter>(std::move(prediction));
}

}  // namespace forerun
