// The nodes of a trie, by numbers that are given again when their nodes are gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace forerun {

// Begins with node 0, the top. References hold until the next add().
template <typename Node>
class NodePool {
 public:
  Node& operator[](int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  const Node& operator[](int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  size_t size() const { return nodes_.size() - free_.size(); }

  int32_t add(Node node) {
    if (free_.empty()) {
      nodes_.push_back(std::move(node));
      return static_cast<int32_t>(nodes_.size()) - 1;
    }
    const int32_t number = free_.back();
    free_.pop_back();
    (*this)[number] = std::move(node);
    return number;
  }
  void erase(int32_t node) {
    (*this)[node] = {};
    free_.push_back(node);
  }

 private:
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<int32_t> free_;
};

}  // namespace forerun
