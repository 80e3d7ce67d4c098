// A node of a graph that our own code computes: every thread of ggml's pool runs it,
// then all wait for each other.
#pragma once

#include <ggml.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/kernels/kernels.h"

namespace forerun {

// Which thread of how many.
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
  // Computes its share of `dst`, whose sources are those the node was made with.
  virtual void run(ggml_tensor* dst, Worker worker) const = 0;
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
    ops_.push_back(std::move(op));
    const auto run = [](ggml_tensor* dst, int index, int count, void* self) {
      static_cast<const CpuOp*>(self)->run(dst, {.index = index, .count = count});
    };
    return ggml_custom_4d(context, output.type, output.n0, output.n1, 1, 1, sources.data(),
                          static_cast<int>(sources.size()), run, GGML_N_TASKS_MAX, ops_.back().get());
  }

 private:
  std::vector<std::unique_ptr<CpuOp>> ops_;
};

template <typename T>
T* row_of(const ggml_tensor* tensor, int64_t row) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(tensor->data) +
                              static_cast<size_t>(row) * tensor->nb[1]);
}

// A row of activations as products read it: the numbers, and behind them, where their
// number is a multiple of 32, their quantised blocks. In graphs a tensor of bytes.
struct ActivationLayout {
  int64_t n;

  bool has_blocks() const { return n % kActivationBlock == 0; }
  size_t blocks_offset() const {
    constexpr size_t kAlignment = 64;
    return (static_cast<size_t>(n) * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  }
  size_t row_bytes() const {
    return blocks_offset() +
           (has_blocks() ? static_cast<size_t>(n / kActivationBlock) * sizeof(ActivationBlock) : 0);
  }
  float* floats(const ggml_tensor* tensor, int64_t row) const { return row_of<float>(tensor, row); }
  ActivationBlock* blocks(const ggml_tensor* tensor, int64_t row) const {
    return reinterpret_cast<ActivationBlock*>(row_of<std::byte>(tensor, row) + blocks_offset());
  }
  // Makes the blocks, if there are any, of numbers [first, first + count) of a row; both are
  // multiples of 32 then.
  void quantize(const KernelSet& kernels, const ggml_tensor* tensor, int64_t row, int64_t first,
                int64_t count) const {
    if (!has_blocks()) return;
    kernels.quantize(floats(tensor, row) + first, count, blocks(tensor, row) + first / kActivationBlock);
  }
  CpuOps::Output output(int64_t n_rows) const {
    return {.type = GGML_TYPE_I8, .n0 = static_cast<int64_t>(row_bytes()), .n1 = n_rows};
  }
};

}  // namespace forerun
