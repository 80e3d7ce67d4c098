// A segment's text, stored in 16 bits per token where the vocabulary allows it and in 32
// where not; and the first tokens of a place packed into one number, which compares as
// they do.
//
// Inside the index a token counts as its id plus one and a separator as zero, so that a
// text that ends comes before one that goes on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "core/ids.h"

namespace forerun {

// A view; safe to use from any thread.
class SegmentText {
 public:
  static constexpr TokenId kSeparator{-1};
  static constexpr uint16_t kNarrowSeparator = 0xFFFF;
  static constexpr bool is_narrow(int n_vocab) { return n_vocab <= kNarrowSeparator; }

  SegmentText() = default;
  explicit SegmentText(std::span<const uint16_t> tokens)
      : narrow_(tokens.data()), size_(static_cast<int64_t>(tokens.size())) {}
  explicit SegmentText(std::span<const TokenId> tokens)
      : wide_(tokens.data()), size_(static_cast<int64_t>(tokens.size())), narrow_tokens_(false) {}

  int64_t size() const { return size_; }
  bool narrow() const { return narrow_tokens_; }
  int64_t n_bytes() const { return size_ * (narrow() ? 2 : 4); }
  const void* data() const { return narrow() ? static_cast<const void*>(narrow_) : wide_; }

  // The token's id plus one; 0 for a separator.
  uint32_t value(int64_t place) const {
    return narrow_tokens_ ? static_cast<uint16_t>(narrow_[place] + 1)
                          : static_cast<uint32_t>(to_int(wide_[place])) + 1;
  }
  TokenId token(int64_t place) const { return TokenId{static_cast<int32_t>(value(place)) - 1}; }

  void prefetch(int64_t place) const {
    if (narrow_tokens_) {
      __builtin_prefetch(narrow_ + place);
    } else {
      __builtin_prefetch(wide_ + place);
    }
  }

  // visit(pointer to the tokens as they are stored).
  template <typename Visit>
  auto visit(Visit visit) const {
    return narrow() ? visit(narrow_) : visit(wide_);
  }

  static uint32_t value_of(uint16_t stored) { return static_cast<uint16_t>(stored + 1); }
  static uint32_t value_of(TokenId stored) { return static_cast<uint32_t>(to_int(stored)) + 1; }

 private:
  const uint16_t* narrow_ = nullptr;
  const TokenId* wide_ = nullptr;
  int64_t size_ = 0;
  bool narrow_tokens_ = true;
};

// How many tokens fit into a 64-bit key, first token in its highest bits.
class KeyFormat {
 public:
  // Keys of at most `max_tokens`.
  KeyFormat(int n_vocab, int max_tokens)
      : bits_(std::bit_width(static_cast<uint32_t>(n_vocab))),
        n_tokens_(std::min(64 / std::max(bits_, 1), max_tokens)) {}

  int n_tokens() const { return n_tokens_; }

  // The key of the tokens at `place`, as many as fit or the document has; the lowest bits
  // are 0 where it ends sooner.
  template <typename Token>
  uint64_t key(const Token* text, int64_t place) const {
    return key(text, place, n_tokens_);
  }
  // Of the first `n` tokens only.
  template <typename Token>
  uint64_t key(const Token* text, int64_t place, int n) const {
    uint64_t key = 0;
    for (int i = 0; i < n; ++i) {
      const uint32_t value = SegmentText::value_of(text[place + i]);
      if (value == 0) return i == 0 ? 0 : key << (bits_ * (n_tokens_ - i));
      key = key << bits_ | value;
    }
    return n == n_tokens_ ? key : key << (bits_ * (n_tokens_ - n));
  }

  // Whether the document ended inside the key.
  bool ended(uint64_t key) const { return (key & low_mask(bits_)) == 0; }

  // The keys of all texts that begin with `tokens` (of the vocabulary) or, if those are
  // more than fit, with as many as fit.
  struct Interval {
    uint64_t first;
    uint64_t last;
  };
  Interval interval(std::span<const TokenId> tokens) const {
    const int n = std::min(static_cast<int>(tokens.size()), n_tokens_);
    uint64_t key = 0;
    for (int i = 0; i < n; ++i)
      key = key << bits_ | SegmentText::value_of(tokens[static_cast<size_t>(i)]);
    const int rest = bits_ * (n_tokens_ - n);
    return {key << rest, (key << rest) | low_mask(rest)};
  }

 private:
  static uint64_t low_mask(int bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

  int bits_;
  int n_tokens_;
};

}  // namespace forerun
