#include "cost/guessed_costs.h"

#include <algorithm>
#include <cmath>
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
constexpr Machine kHost{.bandwidth = 1e10, .row_share = 0.15, .attention_row_share = 0.42};
constexpr Machine kAccelerator{.bandwidth = 1e12, .row_share = 0.015, .attention_row_share = 0.05};
// With ggml's kernels: 0.24 (Q8_0) to 0.37 (Q4_1) of a row on a CPU with matrix instructions, nearly all
// of it on one without; 0.06 on an H200.
constexpr Machine kHostOfGgml{.bandwidth = 1e10, .row_share = 0.4, .attention_row_share = 0.42};
constexpr Machine kAcceleratorOfGgml{.bandwidth = 1e12, .row_share = 0.06, .attention_row_share = 0.05};

const Machine& machine_of(const Device& device, bool has_own_kernels) {
  if (device.is_host()) return has_own_kernels ? kHost : kHostOfGgml;
  return has_own_kernels ? kAccelerator : kAcceleratorOfGgml;
}

// Keys and values are read less evenly than weights.
constexpr double kAttentionFactor = 2;

struct Bytes {
  double attention = 0;  // of one layer
  double mlp = 0;
  double experts = 0;
  double rest = 0;
};

// Of a mixture's experts, how many `n_rows` rows are likely to use: each of them uses some.
double share_of_experts(const ExpertsConfig& experts, int n_rows) {
  if (experts.n_all == 0) return 1;
  return 1 - std::pow(1 - static_cast<double>(experts.n_used) / experts.n_all, n_rows);
}

// Of the tensors that `counts`.
template <typename Counts>
Bytes bytes_of(const Model& model, const Counts& counts) {
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

Bytes bytes_of(const Model& model) {
  return bytes_of(model, [](const GgufTensor&) { return true; });
}

double mlp_bytes(const Bytes& bytes, const ModelConfig& config, int n_rows) {
  return bytes.mlp + share_of_experts(config.experts, n_rows) * bytes.experts;
}

}  // namespace

uint64_t n_bytes_read(const Model& model, int n_rows) {
  const Bytes bytes = bytes_of(model);
  const double layer = bytes.attention + mlp_bytes(bytes, model.config(), n_rows);
  return static_cast<uint64_t>(layer * model.config().n_layers + bytes.rest);
}

namespace {

// What a device reads in passes.
struct Share {
  const Machine& machine;
  Bytes bytes;
  int64_t n_cell_numbers;  // keys and values of a token where it computes attention

  double seconds(const ModelConfig& config, int n_rows) const {
    const auto read = [&](int n) {
      return (bytes.attention + mlp_bytes(bytes, config, n)) * config.n_layers + bytes.rest;
    };
    return (read(n_rows) + read(1) * machine.row_share * (n_rows - 1)) / machine.bandwidth;
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

Calibration guess_costs(const Executor& executor) {
  const ModelConfig& config = executor.model().config();
  const std::vector<Share> shares = shares_of(executor.model());
  std::vector<CostPoint> points;
  for (const int n : kRowCounts) {
    CostPoint& point = points.emplace_back(CostPoint{.n_rows = n, .seconds = 0, .seconds_per_token = 0});
    for (const Share& share : shares) {
      point.seconds += share.seconds(config, n);
      point.seconds_per_token += share.seconds_per_token(n);
    }
  }
  BlockCosts blocks;
  for (const auto& [machine, bytes, n_attentions] : shares) {
    blocks.attention += bytes.attention / machine.bandwidth;
    blocks.mlp += mlp_bytes(bytes, config, 1) / machine.bandwidth;
    blocks.rest += bytes.rest / machine.bandwidth;
  }
  return {.curve = CostCurve(std::move(points)), .blocks = blocks};
}

}  // namespace forerun
