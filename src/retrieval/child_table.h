// The hash table of a trie: finds the child of a node with some token.
//
// The trie's nodes lie in one array and say themselves who they are, so the table stores
// nothing but their indices: 4 to 16 bytes per node.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/ids.h"

namespace forerun {

// `Node` has the members parent (uint32_t) and token (TokenId). Node 0 is the root, which
// is nobody's child.
template <typename Node>
class ChildTable {
 public:
  explicit ChildTable(size_t n_slots = 64) : slots_(std::bit_ceil(n_slots), 0) {}

  // The index of the child, or 0.
  uint32_t find(const std::vector<Node>& nodes, uint32_t parent, TokenId token) const {
    for (size_t slot = home(parent, token);; slot = next(slot)) {
      const uint32_t node = slots_[slot];
      if (node == 0 || (nodes[node].parent == parent && nodes[node].token == token)) return node;
    }
  }

  // The last node, which was just appended, is a child that find() did not know.
  void insert_last(const std::vector<Node>& nodes) {
    if (nodes.size() * 2 > slots_.size()) {
      slots_.assign(slots_.size() * 4, 0);
      for (uint32_t node = 1; node < nodes.size(); ++node) place(nodes, node);
    } else {
      place(nodes, static_cast<uint32_t>(nodes.size() - 1));
    }
  }

  void clear() { slots_.assign(slots_.size(), 0); }

  size_t n_bytes() const { return slots_.capacity() * sizeof(uint32_t); }

 private:
  size_t home(uint32_t parent, TokenId token) const {
    const uint64_t key = uint64_t{parent} << 32 | static_cast<uint32_t>(to_int(token));
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & (slots_.size() - 1);
  }
  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  void place(const std::vector<Node>& nodes, uint32_t node) {
    size_t slot = home(nodes[node].parent, nodes[node].token);
    while (slots_[slot] != 0) slot = next(slot);
    slots_[slot] = node;
  }

  std::vector<uint32_t> slots_;
};

}  // namespace forerun
