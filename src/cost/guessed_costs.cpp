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

Bytes bytes_of(const Model& model) {
  Bytes bytes;
  bool has_head = false;
  double embedding = 0;
  for (const GgufTensor& tensor : model.file().tensors()) {
    const std::string_view name = tensor.name;
    const auto n = static_cast<double>(tensor.n_bytes);
    if (name.starts_with("token_embd")) {
      embedding = n;
    } else if (!name.starts_with("blk.")) {
      bytes.rest += n;
      has_head = has_head || name == "output.weight";
    } else {
      const bool is_expert = name.find("_exps.") != name.npos;
      const bool is_mlp = name.find(".ffn_") != name.npos;
      (is_expert ? bytes.experts : is_mlp ? bytes.mlp : bytes.attention) += n;
    }
  }
  if (!has_head) bytes.rest += embedding;
  const int n_layers = std::max(1, model.config().n_layers);
  bytes.attention /= n_layers;
  bytes.mlp /= n_layers;
  bytes.experts /= n_layers;
  return bytes;
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

Calibration guess_costs(const Executor& executor) {
  const Model& model = executor.model();
  const Machine& machine = model.device().is_host() ? kHost : kAccelerator;
  const ModelConfig& config = model.config();
  const double one = static_cast<double>(n_bytes_read(model)) / machine.bandwidth;
  const double cell_bytes = 2.0 * 2 * static_cast<double>(config.n_embd_kv()) * config.n_layers;
  const double slope = kAttentionFactor * cell_bytes / machine.bandwidth;
  std::vector<CostPoint> points;
  for (const int n : kRowCounts) {
    const double bytes = static_cast<double>(n_bytes_read(model, n));
    points.push_back({.n_rows = n,
                      .seconds = bytes / machine.bandwidth + one * machine.row_share * (n - 1),
                      .seconds_per_token = slope * (1 + machine.attention_row_share * (n - 1))});
  }
  const Bytes bytes = bytes_of(model);
  return {.curve = CostCurve(std::move(points)),
          .blocks = {.attention = bytes.attention / machine.bandwidth,
                     .mlp = mlp_bytes(bytes, config, 1) / machine.bandwidth,
                     .rest = bytes.rest / machine.bandwidth}};
}

}  // namespace forerun
