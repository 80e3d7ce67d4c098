// What a sampler remembers of the text so far: the tokens its penalties look at, and where it stands in
// a grammar.
//
// A value. Each branch of a draft tree copies its parent's state and accepts its own
// tokens; copies never affect each other. Copying costs about 300 bytes whatever the
// window: the latest tokens lie inside the object, anything older in an immutable
// array that copies share. A window of at most 64 tokens, llama.cpp's default, never
// allocates; a longer one makes a new array every 64 tokens, which at 32k tokens is
// one copy of 128 KiB. Counts are not kept: the sampler counts the window's tokens
// (about 10 ns each), and a dropped branch needs no undo.
//
// Distinct objects may be used from distinct threads, also when copied from one another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "sampling/constraint.h"

namespace forerun {

class SamplerState {
 public:
  // Remembers nothing.
  SamplerState() = default;

  // Remembers the last `window` tokens (-1 = all), starting with those of `text`.
  explicit SamplerState(int window, std::span<const TokenId> text = {});

  // What the text goes on with from here; may be nullptr.
  void constrain(std::shared_ptr<const Constraint> constraint) { constraint_ = std::move(constraint); }
  const Constraint* constraint() const { return constraint_.get(); }

  // The text grew by this token.
  void accept(TokenId token);

  // Tokens in the window now.
  int64_t size() const { return std::min(n_accepted_, window_); }

  // Calls visit(TokenId) for every token in the window, the latest first.
  template <typename Visit>
  void for_each(Visit&& visit) const;

 private:
  static constexpr int64_t kRecent = 64;

  std::shared_ptr<const Constraint> constraint_;
  int64_t window_ = 0;
  int64_t n_accepted_ = 0;
  std::array<TokenId, kRecent> recent_{};              // token i of the text at i % kRecent
  std::shared_ptr<const std::vector<TokenId>> older_;  // see n_in_recent
  // Of the window's tokens, how many are read from recent_; older_ ends with the others.
  int64_t n_in_recent() const { return older_ ? std::min(size(), n_accepted_ % kRecent) : size(); }
};

template <typename Visit>
void SamplerState::for_each(Visit&& visit) const {
  const int64_t n_recent = n_in_recent();
  for (int64_t i = 1; i <= n_recent; ++i) {
    visit(recent_[static_cast<size_t>((n_accepted_ - i) % kRecent)]);
  }
  const int64_t n_older = size() - n_recent;
  for (int64_t i = 1; i <= n_older; ++i) {
    visit((*older_)[older_->size() - static_cast<size_t>(i)]);
  }
}

}  // namespace forerun
