#include "verify/token_weights.h"

#include <algorithm>

#include "core/check.h"
#include "sampling/ieee_math.h"

namespace forerun {

void TokenWeights::assign(const Distribution& distribution) {
  entries_.clear();
  entries_.reserve(distribution.size());
  total_ = 0;
  for (size_t i = 0; i < distribution.size(); ++i) {
    const float weight = ieee::exp_nonpositive(std::min(distribution.logprobs[i], 0.0f));
    if (weight > 0) entries_.push_back({distribution.tokens[i], static_cast<double>(weight)});
  }
  // Large sets come sorted: they are those that no truncation has ranked.
  const auto by_token = [](const Entry& a, const Entry& b) { return a.token < b.token; };
  if (!std::is_sorted(entries_.begin(), entries_.end(), by_token)) {
    std::sort(entries_.begin(), entries_.end(), by_token);
  }
  for (const Entry& entry : entries_) total_ += entry.weight;
}

size_t TokenWeights::find(TokenId token) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), token,
                                   [](const Entry& entry, TokenId t) { return entry.token < t; });
  const bool found = it != entries_.end() && it->token == token;
  return static_cast<size_t>((found ? it : entries_.end()) - entries_.begin());
}

double TokenWeights::share(TokenId token) const {
  const size_t i = find(token);
  return i < entries_.size() && entries_[i].weight > 0 ? entries_[i].weight / total_ : 0.0;
}

void TokenWeights::remove(TokenId token) {
  const size_t i = find(token);
  if (i == entries_.size()) return;
  entries_[i].weight = 0;
  // Added up anew: a difference would keep the rounding of what has gone.
  total_ = 0;
  for (const Entry& entry : entries_) total_ += entry.weight;
}

void TokenWeights::subtract(const TokenWeights& other) {
  rest_.resize(entries_.size());
  double rest_total = 0;
  auto theirs = other.entries_.begin();
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& mine = entries_[i];
    while (theirs != other.entries_.end() && theirs->token < mine.token) ++theirs;
    const bool shared = theirs != other.entries_.end() && theirs->token == mine.token;
    const double taken = shared && theirs->weight > 0 ? theirs->weight / other.total_ : 0.0;
    rest_[i] = std::max(mine.weight / total_ - taken, 0.0);
    rest_total += rest_[i];
  }
  if (rest_total <= 0) return;
  total_ = rest_total;
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].weight = rest_[i];
}

TokenId TokenWeights::at(double u) const {
  double rest = u * total_;
  const Entry* last = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.weight <= 0) continue;
    last = &entry;
    rest -= entry.weight;
    if (rest < 0) break;
  }
  CHECK(last != nullptr);  // the last one also where rounding leaves a rest
  return last->token;
}

}  // namespace forerun
