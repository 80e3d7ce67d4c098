#include "model/cpu/heads_ops.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/cpu/norm_ops.h"
#include "model/cpu/rotation.h"

namespace forerun {
namespace {

class RopeTableOp final : public CpuOp {
 public:
  RopeTableOp(const RopeConfig& rope, const ggml_tensor* factors)
      : rope_(rope),
        factors_(factors),
        theta_scale_(std::pow(rope.freq_base, -2.0f / static_cast<float>(rope.n_dims))),
        stretch_(rope.stretch()) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const auto* positions = static_cast<const int32_t*>(dst->src[0]->data);
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t row = first; row < end; ++row) fill(positions[row], row_of<float>(dst, row));
  }

 private:
  void fill(int32_t position, float* table) const {
    const auto* factors = factors_ == nullptr ? nullptr : static_cast<const float*>(factors_->data);
    auto theta = static_cast<float>(position);
    for (int i = 0; i < rope_.n_dims / 2; ++i) {
      const float angle = stretched(factors == nullptr ? theta : theta / factors[i], i);
      table[2 * i] = std::cos(angle) * stretch_.magnitude;
      table[2 * i + 1] = std::sin(angle) * stretch_.magnitude;
      theta *= theta_scale_;
    }
  }

  // YaRN: low frequencies are interpolated, high ones kept, those between are mixed.
  float stretched(float theta, int i) const {
    const float interpolated = rope_.freq_scale * theta;
    if (rope_.ext_factor == 0.0f) return interpolated;
    const float width = std::max(0.001f, stretch_.high_dim - stretch_.low_dim);
    const float place = (static_cast<float>(i) - stretch_.low_dim) / width;
    const float kept = (1.0f - std::clamp(place, 0.0f, 1.0f)) * rope_.ext_factor;
    return interpolated * (1.0f - kept) + theta * kept;
  }

  RopeConfig rope_;
  const ggml_tensor* factors_;
  float theta_scale_;
  RopeStretch stretch_;
};

class HeadsOp final : public CpuOp {
 public:
  HeadsOp(const KernelSet& kernels, const HeadsOptions& options)
      : kernels_(kernels), options_(options) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const HeadsConfig& heads = options_.heads;
    const int64_t n_heads =
        !options_.has_cells ? heads.n : heads.n + heads.n_kv * (reuses_keys() ? 1 : 2);
    const auto [first, end] = share_of(worker, dst->ne[1] * n_heads);
    for (int64_t unit = first; unit < end; ++unit) compute(dst, unit / n_heads, unit % n_heads);
  }

 private:
  // Heads are counted over queries, then keys, then values.
  void compute(ggml_tensor* dst, int64_t row, int64_t head) const {
    const auto& [n, n_kv, dim] = options_.heads;
    float* x = row_of<float>(dst->src[0], row) + head * dim;
    const float* table = row_of<float>(dst->src[1], row);
    const int64_t cell = static_cast<const int64_t*>(dst->src[2]->data)[row];
    add_bias(head, x);
    if (head < n) {
      place(options_.weights->q_norm, table, x);
      float* q = row_of<float>(dst, row) + head * dim;
      const float scale = options_.config->query_scale * temperature(dst->src[3], row);
      for (int64_t i = 0; i < dim; ++i) q[i] = x[i] * scale;
    } else if (head < n + n_kv) {
      if (reuses_keys()) store_value(cell, head - n, x);
      place(options_.weights->k_norm, table, x);
      store_head(options_.keys, cell, (head - n) * dim, dim, x);
    } else {
      store_value(cell, head - n - n_kv, x);
    }
  }

  // Whether values are keys before norms and rotation.
  bool reuses_keys() const {
    return options_.weights->qkv.weight == nullptr && options_.weights->v.weight == nullptr;
  }

  void store_value(int64_t cell, int64_t head, const float* x) const {
    std::array<float, kMaxHeadDim> normed;
    const int dim = options_.heads.dim;
    if (options_.config->has_value_norms) {
      apply_norm(kernels_, {.kind = NormKind::kRms}, options_.config->norm_eps, dim, x, normed.data());
      x = normed.data();
    }
    store_head(options_.values, cell, head * dim, dim, x);
  }

  // A projection in one matrix may come with the biases of three.
  void add_bias(int64_t head, float* x) const {
    const AttentionWeights& weights = *options_.weights;
    if (weights.qkv.weight == nullptr) return;
    const auto& [n, n_kv, dim] = options_.heads;
    const ggml_tensor* bias = weights.q.bias;
    if (head >= n) {
      head -= n;
      bias = head < n_kv ? weights.k.bias : weights.v.bias;
      head %= n_kv;
    }
    if (bias == nullptr) return;
    const float* values = static_cast<const float*>(bias->data) + head * dim;
    for (int i = 0; i < dim; ++i) x[i] += values[i];
  }

  // A query's or key's head: its norm and its rotation.
  void place(const Norm& norm, const float* table, float* x) const {
    const ModelConfig& config = *options_.config;
    const auto normalize = [&] {
      apply_norm(kernels_, norm, config.norm_eps, options_.heads.dim, x, x);
    };
    if (config.head_norms == HeadNorms::kEach) normalize();
    rotate(options_.rope_layout, options_.n_rope_dims, table, x);
    if (config.head_norms == HeadNorms::kEachRotated) normalize();
  }

  static float temperature(const ggml_tensor* temperatures, int64_t row) {
    return temperatures == nullptr ? 1.0f : static_cast<const float*>(temperatures->data)[row];
  }

  const KernelSet& kernels_;
  HeadsOptions options_;
};

}  // namespace

std::unique_ptr<CpuOp> rope_table_op(const RopeConfig& rope, const ggml_tensor* factors) {
  return std::make_unique<RopeTableOp>(rope, factors);
}

std::unique_ptr<CpuOp> heads_op(const KernelSet& kernels, const HeadsOptions& options) {
  return std::make_unique<HeadsOp>(kernels, options);
}

}  // namespace forerun
