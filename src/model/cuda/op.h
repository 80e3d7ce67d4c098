// The nodes of a graph that our kernels compute on a GPU: each launches what computes it.
#pragma once

#include <cuda_runtime.h>
#include <ggml.h>

#include <functional>
#include <utility>
#include <vector>

#include "model/graph_nodes.h"

namespace forerun::cuda {

// Launches what computes `dst`, whose sources and memory are known by then.
using Launch = std::function<void(ggml_tensor* dst, cudaStream_t stream)>;

struct CudaStep {
  Launch launch;
  ggml_tensor* dst;
};

class CudaOps {
 public:
  ggml_tensor* add(ggml_context* context, NodeOutput output, std::vector<ggml_tensor*> sources,
                   Launch launch) {
    return nodes_.add(context, output, std::move(sources), std::move(launch));
  }

  std::vector<CudaStep> steps(ggml_cgraph* graph) const {
    std::vector<CudaStep> steps;
    nodes_.for_each(graph, [&](ggml_tensor* node, const Launch& launch) {
      steps.push_back({.launch = launch, .dst = node});
    });
    return steps;
  }

 private:
  GraphNodes<Launch> nodes_;
};

}  // namespace forerun::cuda
