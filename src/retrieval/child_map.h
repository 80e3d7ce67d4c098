// Which child of a trie's node has a token: one hash table for all nodes of a trie.
//
// Open addressing with linear probing over the numbers of children, 4 bytes each; what they are
// found by lies beside, in the order of their numbers. Erasing moves the entries behind it, so no
// dead entries are left. Node numbers are the trie's own, from 0 on, without large gaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/ids.h"

namespace forerun {

class ChildMap {
 public:
  static constexpr int32_t kNone = -1;

  size_t size() const { return size_; }
  size_t n_bytes() const { return slots_.capacity() * sizeof(int32_t) + keys_.capacity() * sizeof(Key); }

  // kNone if `parent` has no such child.
  int32_t find(int32_t parent, TokenId token) const { return slots_[place_of({parent, token})]; }

  // Adds a child, or makes `child` the one with this token. It must not be anybody's child at
  // another place by then.
  void set(int32_t parent, TokenId token, int32_t child) {
    if (2 * size_ >= slots_.size()) grow();
    const Key key{parent, token};
    int32_t& slot = slots_[place_of(key)];
    if (slot == kNone) ++size_;
    slot = child;
    const auto index = static_cast<size_t>(child);
    if (index >= keys_.size()) keys_.resize(index + 1);
    keys_[index] = key;
  }

  // The child exists.
  void erase(int32_t parent, TokenId token) {
    size_t hole = place_of({parent, token});
    CHECK(slots_[hole] != kNone);
    // An entry behind the hole moves into it unless that is before its own first place.
    for (size_t i = next(hole); slots_[i] != kNone; i = next(i)) {
      if (distance(home(key_of(slots_[i])), i) >= distance(hole, i)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole] = kNone;
    --size_;
  }

  // Keeps its memory.
  void clear() {
    std::fill(slots_.begin(), slots_.end(), kNone);
    keys_.clear();
    size_ = 0;
  }

 private:
  struct Key {
    int32_t parent = kNone;
    TokenId token{};

    bool operator==(const Key&) const = default;
  };
  static constexpr size_t kFirstSize = 64;
  static constexpr size_t kGrowth = 4;

  const Key& key_of(int32_t child) const { return keys_[static_cast<size_t>(child)]; }

  // Where a search for the key begins.
  size_t home(const Key& key) const {
    const uint64_t bits =
        uint64_t{static_cast<uint32_t>(key.parent)} << 32 | static_cast<uint32_t>(to_int(key.token));
    return static_cast<size_t>((bits * 0x9E3779B97F4A7C15u) >> 32) & (slots_.size() - 1);
  }
  size_t next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
  size_t distance(size_t from, size_t to) const { return (to - from) & (slots_.size() - 1); }

  // Where the child is, or where it would be put.
  size_t place_of(const Key& key) const {
    size_t i = home(key);
    while (slots_[i] != kNone && key_of(slots_[i]) != key) i = next(i);
    return i;
  }

  void grow() {
    const auto old = std::exchange(slots_, std::vector<int32_t>(kGrowth * slots_.size(), kNone));
    for (const int32_t child : old) {
      if (child == kNone) continue;
      size_t i = home(key_of(child));
      while (slots_[i] != kNone) i = next(i);
      slots_[i] = child;
    }
  }

  // A power of two of them, of which at least half are kNone.
  std::vector<int32_t> slots_ = std::vector<int32_t>(kFirstSize, kNone);
  std::vector<Key> keys_;  // per node; those of nodes that are nobody's child mean nothing
  size_t size_ = 0;
};

}  // namespace forerun
