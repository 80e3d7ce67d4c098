#include "model/cpu/norm_ops.h"

#include <algorithm>
#include <numbers>

#include "model/cpu/activation_layout.h"

namespace forerun {
namespace {

const float* floats_of(const ggml_tensor* vector) {
  return vector == nullptr ? nullptr : static_cast<const float*>(vector->data);
}

class NormOp final : public CpuOp {
 public:
  NormOp(const KernelSet& kernels, const Norm& norm, float eps)
      : kernels_(kernels), norm_(norm), eps_(eps) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ggml_tensor* states = dst->src[0];
    const ActivationLayout layout{kernels_, states->ne[0], states->ne[1]};
    const auto [first, end] = layout.rows_of(share_of(worker, layout.n_bundles()));
    for (int64_t row = first; row < end; ++row) {
      apply_norm(kernels_, norm_, eps_, layout.n, row_of<float>(states, row), layout.floats(dst, row));
      layout.quantize(dst, row, 0, layout.n);
    }
  }

 private:
  const KernelSet& kernels_;
  Norm norm_;
  float eps_;
};

class NormAddOp final : public CpuOp {
 public:
  NormAddOp(const KernelSet& kernels, const Norm& norm, float eps)
      : kernels_(kernels), norm_(norm), eps_(eps) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t row = first; row < end; ++row) {
      float* y = row_of<float>(dst, row);
      apply_norm(kernels_, norm_, eps_, dst->ne[0], row_of<float>(dst->src[0], row), y);
      if (dst->src[1] == nullptr) continue;
      const float* residual = row_of<float>(dst->src[1], row);
      for (int64_t i = 0; i < dst->ne[0]; ++i) y[i] += residual[i];
    }
  }

 private:
  const KernelSet& kernels_;
  Norm norm_;
  float eps_;
};

class PerLayerOp final : public CpuOp {
 public:
  PerLayerOp(const KernelSet& kernels, const Norm& norm, float eps, int64_t n)
      : kernels_(kernels), norm_(norm), eps_(eps), n_(n) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const int64_t n_layers = dst->ne[0] / n_;
    const auto [first, end] = share_of(worker, dst->ne[1] * n_layers);
    for (int64_t unit = first; unit < end; ++unit) {
      const int64_t row = unit / n_layers, offset = unit % n_layers * n_;
      float* y = row_of<float>(dst, row) + offset;
      const float* of_table = row_of<float>(dst->src[1], row) + offset;
      apply_norm(kernels_, norm_, eps_, n_, row_of<float>(dst->src[0], row) + offset, y);
      for (int64_t i = 0; i < n_; ++i) y[i] = (y[i] + of_table[i]) * std::numbers::sqrt2_v<float> / 2;
    }
  }

 private:
  const KernelSet& kernels_;
  Norm norm_;
  float eps_;
  int64_t n_;
};

class NormTogetherOp final : public CpuOp {
 public:
  NormTogetherOp(const KernelSet& kernels, const ModelConfig& config, const AttentionWeights& weights)
      : kernels_(kernels), config_(config), weights_(weights) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const int64_t n_q = config_.heads.n_embd_q(), n_kv = config_.heads.n_embd_kv();
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t row = first; row < end; ++row) {
      const float* x = row_of<float>(dst->src[0], row);
      float* y = row_of<float>(dst, row);
      apply_norm(kernels_, weights_.q_norm, config_.norm_eps, n_q, x, y);
      apply_norm(kernels_, weights_.k_norm, config_.norm_eps, n_kv, x + n_q, y + n_q);
      std::copy_n(x + n_q + n_kv, n_kv, y + n_q + n_kv);
    }
  }

 private:
  const KernelSet& kernels_;
  const ModelConfig& config_;
  const AttentionWeights& weights_;
};

}  // namespace

void apply_norm(const KernelSet& kernels, const Norm& norm, float eps, int64_t n, const float* x,
                float* y) {
  switch (norm.kind) {
    case NormKind::kNone:
      if (y != x) std::copy_n(x, n, y);
      return;
    case NormKind::kRms: return kernels.rms_norm(x, floats_of(norm.weight), eps, n, y);
    case NormKind::kLayer:
      return kernels.layer_norm(
          {.weight = floats_of(norm.weight), .bias = floats_of(norm.bias), .eps = eps}, x, n, y);
  }
}

std::unique_ptr<CpuOp> norm_op(const KernelSet& kernels, const Norm& norm, float eps) {
  return std::make_unique<NormOp>(kernels, norm, eps);
}

std::unique_ptr<CpuOp> norm_add_op(const KernelSet& kernels, const Norm& norm, float eps) {
  return std::make_unique<NormAddOp>(kernels, norm, eps);
}

std::unique_ptr<CpuOp> per_layer_op(const KernelSet& kernels, const Norm& norm, float eps, int64_t n) {
  return std::make_unique<PerLayerOp>(kernels, norm, eps, n);
}

std::unique_ptr<CpuOp> norm_together_op(const KernelSet& kernels, const ModelConfig& config,
                                        const AttentionWeights& weights) {
  return std::make_unique<NormTogetherOp>(kernels, config, weights);
}

}  // namespace forerun
