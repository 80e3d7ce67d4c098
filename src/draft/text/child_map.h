// Which child of a trie's node has a token: one hash table for all nodes of a trie.
//
// Open addressing with linear probing; erasing moves the entries behind it, so no dead
// entries are left. Node numbers are the trie's own, from 0 on.
#pragma once

#include <algorithm>
#include <bit>
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
  size_t n_bytes() const { return slots_.capacity() * sizeof(Slot); }

  // kNone if `parent` has no such child.
  int32_t find(int32_t parent, TokenId token) const {
    if (slots_.empty()) return kNone;
    return slots_[place_of(parent, token)].child;
  }

  // Adds a child, or makes `child` the one with this token.
  void set(int32_t parent, TokenId token, int32_t child) {
    if (3 * (size_ + 1) > 2 * slots_.size()) grow();
    Slot& slot = slots_[place_of(parent, token)];
    if (slot.child == kNone) ++size_;
    slot = {.parent = parent, .token = token, .child = child};
  }

  // The child exists.
  void erase(int32_t parent, TokenId token) {
    size_t hole = place_of(parent, token);
    CHECK(slots_[hole].child != kNone);
    // An entry behind the hole moves into it unless that is before its own first place.
    for (size_t i = next(hole); slots_[i].child != kNone; i = next(i)) {
      const size_t home = hash(slots_[i].parent, slots_[i].token);
      if (distance(home, i) >= distance(hole, i)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].child = kNone;
    --size_;
  }

  void clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    int32_t parent = kNone;
    TokenId token{};
    int32_t child = kNone;
  };
  static constexpr size_t kFirstSize = 64;

  size_t hash(int32_t parent, TokenId token) const {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(parent)) << 32 |
                         static_cast<uint32_t>(to_int(token));
    const uint64_t product = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(product >> (64 - std::countr_zero(slots_.size())));
  }
  size_t next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
  size_t distance(size_t from, size_t to) const { return (to - from) & (slots_.size() - 1); }

  // Where the entry is, or where it would be put.
  size_t place_of(int32_t parent, TokenId token) const {
    size_t i = hash(parent, token);
    while (slots_[i].child != kNone && (slots_[i].parent != parent || slots_[i].token != token))
      i = next(i);
    return i;
  }

  void grow() {
    const auto old = std::exchange(slots_, std::vector<Slot>(std::max(kFirstSize, 2 * slots_.size())));
    for (const Slot& slot : old) {
      if (slot.child != kNone) slots_[place_of(slot.parent, slot.token)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, or none
  size_t size_ = 0;
};

}  // namespace forerun
