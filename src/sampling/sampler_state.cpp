#include "sampling/sampler_state.h"

#include <limits>

#include "core/check.h"

namespace forerun {

SamplerState::SamplerState(int window, std::span<const TokenId> text)
    : window_(window < 0 ? std::numeric_limits<int64_t>::max() : window) {
  CHECK(window >= -1);
  // All but the last incomplete group of kRecent tokens go to the shared array at once.
  const size_t n_grouped = text.size() / kRecent * kRecent;
  if (window_ > kRecent && n_grouped > 0) {
    const size_t n_kept =
        static_cast<size_t>(std::min<int64_t>(window_, static_cast<int64_t>(n_grouped)));
    const auto kept = text.subspan(n_grouped - n_kept, n_kept);
    older_ = std::make_shared<const std::vector<TokenId>>(kept.begin(), kept.end());
    n_accepted_ = static_cast<int64_t>(n_grouped);
    text = text.subspan(n_grouped);
  }
  for (TokenId token : text) accept(token);
}

void SamplerState::accept(TokenId token) {
  if (constraint_ != nullptr) constraint_ = constraint_->after(token);
  if (window_ == 0) return;
  recent_[static_cast<size_t>(n_accepted_ % kRecent)] = token;
  ++n_accepted_;
  if (window_ <= kRecent || n_accepted_ % kRecent != 0) return;

  // recent_ is full: a new array of the window's older tokens and these.
  std::vector<TokenId> grown;
  const int64_t n_older = std::min(older_ ? static_cast<int64_t>(older_->size()) : 0, window_ - kRecent);
  grown.reserve(static_cast<size_t>(n_older + kRecent));
  if (n_older > 0) grown.assign(older_->end() - n_older, older_->end());
  grown.insert(grown.end(), recent_.begin(), recent_.end());
  older_ = std::make_shared<const std::vector<TokenId>>(std::move(grown));
}

}  // namespace forerun
