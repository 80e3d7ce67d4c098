#include "sampling/logits_view.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace forerun {

std::span<const float> LogitsView::all() const {
  if (whole_ == nullptr) return all_;
  const auto row = whole_->row(place_);
  return memory_ != nullptr ? fit_logits(row, n_vocab_, *memory_) : row;
}

LogitsView LogitsView::fitted(size_t n, std::vector<float>& memory) const {
  if (n == n_vocab_) return *this;
  // The best of a larger vocabulary may be those that are cut off.
  if (whole_ == nullptr || n < n_vocab_) return fit_logits(all(), n, memory);
  LogitsView view = *this;
  view.n_vocab_ = n;
  view.memory_ = &memory;
  return view;
}

SoftmaxSums LogitsView::sums() const {
  return whole_ == nullptr ? softmax_sums(all_) : best_.sums;
}

const ScoredToken* LogitsView::find_best(TokenId token) const {
  const auto found = std::ranges::find(best_.tokens, token, &ScoredToken::token);
  return found != best_.tokens.end() ? &*found : nullptr;
}

float LogitsView::logit(TokenId token) const {
  const ScoredToken* best = find_best(token);
  return best != nullptr ? best->logit : all()[static_cast<size_t>(to_int(token))];
}

float LogitsView::most_of(TokenId token) const {
  if (whole_ == nullptr) return logit(token);
  if (const ScoredToken* best = find_best(token)) return best->logit;
  const bool has_others = best_.tokens.size() >= kBestLogits;
  return has_others ? best_.tokens.back().logit : -std::numeric_limits<float>::infinity();
}

void LogitsView::top(size_t k, SelectionScratch& scratch, std::vector<ScoredToken>& out) const {
  if (whole_ == nullptr || k > kBestLogits) return select_top(all(), k, scratch, out);
  CHECK(k > 0);
  const auto top = best_.tokens.first(std::min(k, best_.tokens.size()));
  out.assign(top.begin(), top.end());
}

}  // namespace forerun
