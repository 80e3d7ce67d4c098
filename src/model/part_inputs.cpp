// What the rows of a stage are for its graph: where they stand, what they see, which of them come out.
#include <algorithm>
#include <cstring>

#include "model/part_passes.h"

namespace forerun {
namespace {

constexpr ggml_fp16_t kVisible = 0x0000;  // 0
constexpr ggml_fp16_t kHidden = 0xFC00;   // minus infinity

}  // namespace

void PartPasses::write_inputs() {
  const PassInputs& inputs = current_->inputs();
  if (inputs.positions != nullptr) {
    auto* positions = input_memory_.host<int32_t>(inputs.positions);
    auto* cells = input_memory_.host<int64_t>(inputs.cells);
    for (size_t r = 0; r < rows_.size(); ++r) {
      positions[r] = to_int(cells_.position(rows_[r].sequence, rows_[r].node));
      cells[r] = cells_.cell(rows_[r].sequence, rows_[r].node);
    }
    if (inputs.temperatures != nullptr) {
      auto* temperatures = input_memory_.host<float>(inputs.temperatures);
      for (size_t r = 0; r < rows_.size(); ++r)
        temperatures[r] = model_.config().temperature(positions[r]);
    }
    if (inputs.mask != nullptr) write_masks();
    if (inputs.seen != nullptr) {
      part_.gpu->fill_seen(model_.config(), visible_, current_->n_kv(), current_->attention_tiles(),
                           input_memory_.host<std::byte>(inputs.seen));
    }
  }
  if (inputs.per_layer != nullptr) write_embeddings();
  const auto write_rows = [&](ggml_tensor* tensor, bool Row::*wanted) {
    if (tensor == nullptr) return;
    auto* out = input_memory_.host<int32_t>(tensor);
    for (size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].*wanted) *out++ = static_cast<int32_t>(r);
    }
  };
  write_rows(inputs.out_rows, &Row::logits);
  write_rows(inputs.hidden_rows, &Row::hidden);
}

void PartPasses::write_embeddings() {
  const PassInputs& inputs = current_->inputs();
  auto* embeddings = input_memory_.host<float>(inputs.embeddings);
  auto* per_layer = input_memory_.host<float>(inputs.per_layer);
  const auto n_embd = static_cast<size_t>(inputs.embeddings->ne[0]),
             n_per_layer = static_cast<size_t>(inputs.per_layer->ne[0]);
  const auto write = [&](int /*thread*/, size_t r) {
    model_.embed(rows_[r].token, {embeddings + r * n_embd, n_embd});
    model_.embed_per_layer(rows_[r].token, {per_layer + r * n_per_layer, n_per_layer});
  };
  if (rows_.size() == 1) {
    write(0, 0);
  } else {
    model_.helping_device().share_out(rows_.size(), write);
  }
}

void PartPasses::write_masks() {
  const auto write = [&](ggml_tensor* tensor, const SlidingWindow& window) {
    const auto n_kv = static_cast<size_t>(tensor->ne[0]);
    auto* mask = input_memory_.host<ggml_fp16_t>(tensor);
    for (size_t r = 0; r < rows_.size(); ++r, mask += n_kv) {
      const Row& row = rows_[r];
      const bool same_sequence = r > 0 && row.sequence == rows_[r - 1].sequence;
      const int size = window.size_at(to_int(cells_.position(row.sequence, row.node)));
      if (same_sequence && row.node == rows_[r - 1].node) {
        std::memcpy(mask, mask - n_kv, n_kv * sizeof(*mask));
      } else if (size != 1 && same_sequence &&
                 cells_.parent(row.sequence, row.node) == rows_[r - 1].node) {
        // It sees what its parent sees, and itself, less what leaves its window.
        std::memcpy(mask, mask - n_kv, n_kv * sizeof(*mask));
        mask[cells_.cell(row.sequence, row.node)] = kVisible;
        const Position leaves = cells_.position(row.sequence, row.node) - size;
        if (size == 0) continue;
        if (const auto cell = cells_.cell_at(row.sequence, row.node, leaves)) mask[*cell] = kHidden;
      } else {
        std::fill(mask, mask + n_kv, kHidden);
        cells_.for_each_visible(row.sequence, row.node, size,
                                [&](int32_t cell) { mask[cell] = kVisible; });
      }
    }
  };
  const PassInputs& inputs = current_->inputs();
  write(inputs.mask, {});
  if (inputs.window_mask != nullptr) write(inputs.window_mask, model_.config().sliding_window());
}

}  // namespace forerun
