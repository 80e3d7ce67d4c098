// The logits of a pass that lie on a GPU, copied from there row by row as they are asked for.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "model/device.h"
#include "sampling/logits_view.h"

namespace forerun {

class DeviceLogits final : public WholeLogits {
 public:
  // The device outlives it.
  explicit DeviceLogits(const Device& device) : device_(device) {}

  // Those of a pass that was computed, [n_vocab, rows or more]: what was copied before is forgotten.
  void begin(const ggml_tensor* logits, size_t n_rows);
  // Copies rows [first, end) at once.
  void fetch(size_t first, size_t end);

  std::span<const float> row(size_t place) override;

 private:
  void copy(size_t first, size_t end);

  const Device& device_;
  std::mutex mutex_;  // of all below
  const ggml_tensor* logits_ = nullptr;
  std::vector<bool> is_here_;  // per row
  DeviceMemory memory_;
};

}  // namespace forerun
