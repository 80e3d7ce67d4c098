// Nodes of a ggml graph that code of ours computes: ggml plans their memory, and no more.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace forerun {

// What a node holds.
struct NodeOutput {
  ggml_type type;
  int64_t n0;
  int64_t n1;
};

// `Work`: what computes a node. It is owned here.
template <typename Work>
class GraphNodes {
 public:
  ggml_tensor* add(ggml_context* context, NodeOutput output, std::vector<ggml_tensor*> sources,
                   Work work) {
    const auto nothing = [](ggml_tensor*, int, int, void*) {};  // ggml is never asked to
    ggml_tensor* node = ggml_custom_4d(context, output.type, output.n0, output.n1, 1, 1, sources.data(),
                                       static_cast<int>(sources.size()), nothing, 1, nullptr);
    works_.emplace(node, std::move(work));
    return node;
  }

  // f(node, work) for the nodes of a graph, in its order. All must have been added here.
  template <typename F>
  void for_each(ggml_cgraph* graph, F f) const {
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
      ggml_tensor* node = ggml_graph_node(graph, i);
      f(node, works_.at(node));
    }
  }

 private:
  std::unordered_map<const ggml_tensor*, Work> works_;
};

}  // namespace forerun
