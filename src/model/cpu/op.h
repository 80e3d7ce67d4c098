// A node of a graph that our own code computes (worker_pool.h).
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

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

// Owns the operations of one graph.
class CpuOps {
 public:
  struct Output {
    ggml_type type;
    int64_t n0;
    int64_t n1;
  };
  ggml_tensor* add(ggml_context* context, std::unique_ptr<CpuOp> op, Output output,
                   std::vector<ggml_tensor*> sources) {
    const auto run = [](ggml_tensor* dst, int index, int count, void* self) {
      static_cast<const CpuOp*>(self)->run(dst, {.index = index, .count = count});
    };
    ggml_tensor* dst = ggml_custom_4d(context, output.type, output.n0, output.n1, 1, 1, sources.data(),
                                      static_cast<int>(sources.size()), run, GGML_N_TASKS_MAX, op.get());
    ops_.emplace(dst, std::move(op));
    return dst;
  }

  // The nodes of a graph, in its order. All must have been added here.
  std::vector<CpuStep> steps(ggml_cgraph* graph) const {
    std::vector<CpuStep> steps;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
      ggml_tensor* node = ggml_graph_node(graph, i);
      steps.push_back({.op = ops_.at(node).get(), .dst = node});
    }
    return steps;
  }

 private:
  std::unordered_map<const ggml_tensor*, std::unique_ptr<CpuOp>> ops_;  // by what they compute
};

template <typename T>
T* row_of(const ggml_tensor* tensor, int64_t row) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(tensor->data) +
                              static_cast<size_t>(row) * tensor->nb[1]);
}

}  // namespace forerun
