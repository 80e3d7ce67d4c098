// The nodes of a graph that our kernels compute on a GPU: each launches what computes it.
#pragma once

#include <cuda_runtime.h>
#include <ggml.h>

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace forerun::cuda {

// Launches what computes `dst`, whose sources and memory are known by then.
using Launch = std::function<void(ggml_tensor* dst, cudaStream_t stream)>;

struct CudaStep {
  Launch launch;
  ggml_tensor* dst;
};

class CudaOps {
 public:
  // A node of bytes [n0, n1], for what it computes.
  ggml_tensor* add(ggml_context* context, int64_t n0, int64_t n1, std::vector<ggml_tensor*> sources,
                   Launch launch) {
    return add_node(context, GGML_TYPE_I8, n0, n1, std::move(sources), std::move(launch));
  }
  // The same of floats.
  ggml_tensor* add_floats(ggml_context* context, int64_t n0, int64_t n1,
                          std::vector<ggml_tensor*> sources, Launch launch) {
    return add_node(context, GGML_TYPE_F32, n0, n1, std::move(sources), std::move(launch));
  }

  // The nodes of a graph, in its order. All must have been added here.
  std::vector<CudaStep> steps(ggml_cgraph* graph) const {
    std::vector<CudaStep> steps;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
      ggml_tensor* node = ggml_graph_node(graph, i);
      steps.push_back({.launch = launches_.at(node), .dst = node});
    }
    return steps;
  }

 private:
  ggml_tensor* add_node(ggml_context* context, ggml_type type, int64_t n0, int64_t n1,
                        std::vector<ggml_tensor*> sources, Launch launch) {
    const auto nothing = [](ggml_tensor*, int, int, void*) {};
    ggml_tensor* dst = ggml_custom_4d(context, type, n0, n1, 1, 1, sources.data(),
                                      static_cast<int>(sources.size()), nothing, 1, nullptr);
    launches_.emplace(dst, std::move(launch));
    return dst;
  }

  std::unordered_map<const ggml_tensor*, Launch> launches_;
};

}  // namespace forerun::cuda
