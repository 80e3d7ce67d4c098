// A node of a graph that our own code computes (worker_pool.h).
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/graph_nodes.h"

namespace forerun {

// Which share of how many.
struct Worker {
  int index;
  int count;
};

struct Range {
  int64_t first;
  int64_t end;
};

// A worker's share of n units of work: a contiguous range, so that its reads are one
// stream.
inline Range share_of(Worker worker, int64_t n) {
  return {.first = n * worker.index / worker.count, .end = n * (worker.index + 1) / worker.count};
}

class CpuOp {
 public:
  virtual ~CpuOp() = default;
  // Computes a share of `dst`, whose sources are those the node was made with.
  virtual void run(ggml_tensor* dst, Worker worker) const = 0;
  // Whether it is worth cutting into more shares than there are threads.
  virtual bool takes_many_shares() const { return false; }
};

struct CpuStep {
  const CpuOp* op;
  ggml_tensor* dst;
};

// The operations of one graph.
class CpuOps {
 public:
  ggml_tensor* add(ggml_context* context, std::unique_ptr<CpuOp> op, NodeOutput output,
                   std::vector<ggml_tensor*> sources) {
    return nodes_.add(context, output, std::move(sources), std::move(op));
  }

  std::vector<CpuStep> steps(ggml_cgraph* graph) const {
    std::vector<CpuStep> steps;
    nodes_.for_each(graph, [&](ggml_tensor* node, const std::unique_ptr<CpuOp>& op) {
      steps.push_back({.op = op.get(), .dst = node});
    });
    return steps;
  }

 private:
  GraphNodes<std::unique_ptr<CpuOp>> nodes_;
};

template <typename T>
T* row_of(const ggml_tensor* tensor, int64_t row) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(tensor->data) +
                              static_cast<size_t>(row) * tensor->nb[1]);
}

}  // namespace forerun
