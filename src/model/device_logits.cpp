#include "model/device_logits.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {

void DeviceLogits::begin(const ggml_tensor* logits, size_t n_rows) {
  const std::scoped_lock lock(mutex_);
  logits_ = logits;
  is_here_.assign(n_rows, false);
}

void DeviceLogits::fetch(size_t first, size_t end) {
  const std::scoped_lock lock(mutex_);
  copy(first, end);
}

std::span<const float> DeviceLogits::row(size_t place) {
  const std::scoped_lock lock(mutex_);
  CHECK(place < is_here_.size());
  if (!is_here_[place]) copy(place, place + 1);
  const auto n_vocab = static_cast<size_t>(logits_->ne[0]);
  return {reinterpret_cast<const float*>(memory_.data()) + place * n_vocab, n_vocab};
}

void DeviceLogits::copy(size_t first, size_t end) {
  CHECK(first < end && end <= is_here_.size());
  // For all rows of the pass at once, since rows that were handed out stay where they are.
  const size_t row_bytes = logits_->nb[1];
  if (memory_.size() < is_here_.size() * row_bytes) {
    CHECK(std::ranges::find(is_here_, true) == is_here_.end());
    memory_ = device_.allocate_host(std::max(is_here_.size() * row_bytes, 2 * memory_.size()),
                                    "reading results");
  }
  ggml_backend_tensor_get(logits_, memory_.data() + first * row_bytes, first * row_bytes,
                          (end - first) * row_bytes);
  std::fill(is_here_.begin() + static_cast<std::ptrdiff_t>(first),
            is_here_.begin() + static_cast<std::ptrdiff_t>(end), true);
}

}  // namespace forerun
