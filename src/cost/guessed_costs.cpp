#include "cost/guessed_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

namespace forerun {
namespace {

// Bytes per second, and what a further row adds to a pass and to its attention. The first passes
// correct all of them; how they compare with each other is what counts until then.
struct Machine {
  double bandwidth;
  double row_share;
  double attention_row_share;
};

// With ggml's kernels rows add 0.24 (Q8_0) to 0.37 (Q4_1) of a row on a CPU with matrix instructions,
// nearly all of it on one without; 0.06 on an H200.
Machine machine_of(const Device& device, bool has_own_kernels) {
  if (device.is_host()) {
    return {.bandwidth = 1e10, .row_share = has_own_kernels ? 0.15 : 0.4, .attention_row_share = 0.42};
  }
  return {.bandwidth = 1e12, .row_share = has_own_kernels ? 0.015 : 0.06, .attention_row_share = 0.05};
}

// Keys and values are read less evenly than weights.
constexpr double kAttentionFactor = 2;

struct Bytes {
  double attention = 0;  // of one layer
  double mlp = 0;
  double experts = 0;
  double rest = 0;
};

// Of the tensors that `counts`.
Bytes bytes_of(
    const Model& model,
    const std::function<bool(const GgufTensor&)>& counts = [](const GgufTensor&) { return true; }) {
  Bytes bytes;
  const int n_layers = model.config().n_layers;
  const bool is_tied = model.file().find_tensor("output.weight") == nullptr;
  for (const GgufTensor& tensor : model.file().tensors()) {
    const std::string_view name = tensor.name;
    if (!counts(tensor) || (name.starts_with("token_embd") && !is_tied)) continue;
    if (name.starts_with("per_layer_token_embd")) continue;  // a row at a time
    const auto n = static_cast<double>(tensor.n_bytes);
    if (!name.starts_with("blk.")) {
      bytes.rest += n;
    } else if (const auto block = block_of(name, n_layers)) {
      const bool is_expert = name.find("_exps.") != name.npos;
      const bool is_mlp = static_cast<int>(*block) % 2 == 1;
      (is_expert ? bytes.experts : is_mlp ? bytes.mlp : bytes.attention) += n / std::max(1, n_layers);
    }
  }
  return bytes;
}

// Of one layer, with as many of a mixture's experts as `n_rows` rows are likely to use: each of them
// uses some.
double mlp_bytes(const Bytes& bytes, const ExpertsConfig& experts, int n_rows) {
  if (experts.n_all == 0) return bytes.mlp + bytes.experts;
  const double unused = std::pow(1 - static_cast<double>(experts.n_used) / experts.n_all, n_rows);
  return bytes.mlp + (1 - unused) * bytes.experts;
}

double bytes_read(const Bytes& bytes, const ModelConfig& config, int n_rows) {
  return (bytes.attention + mlp_bytes(bytes, config.experts, n_rows)) * config.n_layers + bytes.rest;
}

// What a device reads in passes.
struct Share {
  Machine machine;
  Bytes bytes;
  int64_t n_cell_numbers;  // keys and values of a token where it computes attention

  double seconds(const ModelConfig& config, int n_rows) const {
    return (bytes_read(bytes, config, n_rows) +
            bytes_read(bytes, config, 1) * machine.row_share * (n_rows - 1)) /
           machine.bandwidth;
  }
  double seconds_per_token(int n_rows) const {
    const double cell_bytes = 2.0 * static_cast<double>(n_cell_numbers);
    return kAttentionFactor * cell_bytes / machine.bandwidth *
           (1 + machine.attention_row_share * (n_rows - 1));
  }
};

std::vector<Share> shares_of(const Model& model) {
  if (model.parts().empty()) {
    return {{.machine = machine_of(model.device(), /*has_own_kernels=*/false),
             .bytes = bytes_of(model),
             .n_cell_numbers = 2 * model.config().n_layers * model.config().heads.n_embd_kv()}};
  }
  std::vector<Share> shares;
  for (const ModelPart& part : model.parts()) {
    const auto counts = [&](const GgufTensor& tensor) {
      return tensor.name.starts_with("blk.") ? part.needs(tensor) : part.has_head;
    };
    int64_t n_cell_numbers = 0;
    for (int layer = 0; layer < model.config().n_layers; ++layer) {
      if (part.has_attention(layer)) n_cell_numbers += model.config().n_cell_numbers(layer);
    }
    shares.push_back({.machine = machine_of(*part.device, part.has_own_kernels()),
                      .bytes = bytes_of(model, counts),
                      .n_cell_numbers = n_cell_numbers});
  }
  return shares;
}

}  // namespace

uint64_t n_bytes_read(const Model& model) {
  return static_cast<uint64_t>(bytes_read(bytes_of(model), model.config(), 1));
}

Calibration guess_costs(const Executor& executor) {
  const ModelConfig& config = executor.model().config();
  std::vector<CostPoint> points;
  for (const int n : kRowCounts) points.push_back({.n_rows = n});
  BlockCosts blocks;
  for (const Share& share : shares_of(executor.model())) {
    for (CostPoint& point : points) {
      point.seconds += share.seconds(config, point.n_rows);
      point.seconds_per_token += share.seconds_per_token(point.n_rows);
    }
    blocks.attention += share.bytes.attention / share.machine.bandwidth;
    blocks.mlp += mlp_bytes(share.bytes, config.experts, 1) / share.machine.bandwidth;
    blocks.rest += share.bytes.rest / share.machine.bandwidth;
  }
  return {.curve = CostCurve(std::move(points)), .blocks = blocks};
}

}  // namespace forerun
