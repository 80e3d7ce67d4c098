#include "model/cpu/latent_ops.h"

#include <algorithm>
#include <array>

#include "model/cpu/activation_layout.h"
#include "model/cpu/norm_ops.h"
#include "model/cpu/rotation.h"

namespace forerun {
namespace {

class HeadRoutesOp final : public CpuOp {
 public:
  explicit HeadRoutesOp(int n_heads) : n_heads_(n_heads) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t i = first; i < end; ++i) {
      *row_of<Route>(dst, i) = {.expert = static_cast<int32_t>(i % n_heads_), .share = 1.0f};
    }
  }

 private:
  int n_heads_;
};

class SplitHeadsOp final : public CpuOp {
 public:
  SplitHeadsOp(const KernelSet& kernels, int n_heads, int64_t stride, int64_t n)
      : kernels_(kernels), n_heads_(n_heads), stride_(stride), n_(n) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ActivationLayout layout{kernels_, n_, dst->ne[1]};
    const auto [first, end] = layout.rows_of(share_of(worker, layout.n_bundles()));
    for (int64_t i = first; i < end; ++i) {
      const float* head = row_of<float>(dst->src[0], i / n_heads_) + i % n_heads_ * stride_;
      std::copy_n(head, n_, layout.floats(dst, i));
    }
  }

 private:
  const KernelSet& kernels_;
  int n_heads_;
  int64_t stride_;
  int64_t n_;
};

class LatentHeadsOp final : public CpuOp {
 public:
  LatentHeadsOp(const KernelSet& kernels, const LatentHeadsOptions& options)
      : kernels_(kernels), options_(options) {}

  // A row's key comes behind its queries.
  void run(ggml_tensor* dst, Worker worker) const override {
    const int64_t n_units = options_.config->heads.n + 1;
    const auto [first, end] = share_of(worker, dst->ne[1] * n_units);
    for (int64_t unit = first; unit < end; ++unit) {
      const int64_t row = unit / n_units, head = unit % n_units;
      head + 1 < n_units ? make_query(dst, row, head) : store_key(dst, row);
    }
  }

 private:
  void make_query(ggml_tensor* dst, int64_t row, int64_t head) const {
    const LatentConfig& latent = options_.config->latent;
    const ExpertGroups groups(options_.shape, static_cast<int32_t*>(dst->src[2]->data));
    const int64_t slot = groups.slot_of(row * options_.config->heads.n + head, 0);
    float* query = row_of<float>(dst, row) + head * options_.config->heads.dim;
    std::copy_n(row_of<float>(dst->src[1], slot), latent.n, query);
    const float* rotated =
        row_of<float>(dst->src[0], row) + head * (latent.n_query + latent.n_rotated) + latent.n_query;
    std::copy_n(rotated, latent.n_rotated, query + latent.n);
    turn(dst, row, query + latent.n);
    for (int i = 0; i < options_.config->heads.dim; ++i) query[i] *= options_.config->query_scale;
  }

  void store_key(ggml_tensor* dst, int64_t row) const {
    const LatentConfig& latent = options_.config->latent;
    const float* made = row_of<float>(dst->src[3], row);
    std::array<float, kMaxHeadDim> key;
    apply_norm(kernels_, options_.weights->norm, options_.config->norm_eps, latent.n, made, key.data());
    std::copy_n(made + latent.n, latent.n_rotated, key.data() + latent.n);
    turn(dst, row, key.data() + latent.n);
    const int64_t cell = static_cast<const int64_t*>(dst->src[5]->data)[row];
    store_head(options_.keys, cell, 0, latent.n + latent.n_rotated, key.data());
  }

  void turn(const ggml_tensor* dst, int64_t row, float* x) const {
    const RopeConfig& rope = options_.config->rope;
    rotate(rope.layout, rope.n_dims, row_of<float>(dst->src[4], row), x);
  }

  const KernelSet& kernels_;
  LatentHeadsOptions options_;
};

class JoinHeadsOp final : public CpuOp {
 public:
  JoinHeadsOp(const KernelSet& kernels, const ExpertGroups::Shape& shape, int n_heads, int64_t n)
      : kernels_(kernels), shape_(shape), n_heads_(n_heads), n_(n) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ActivationLayout layout{kernels_, n_heads_ * n_, dst->ne[1]};
    const ExpertGroups groups(shape_, static_cast<int32_t*>(dst->src[1]->data));
    const auto [first, end] = layout.rows_of(share_of(worker, layout.n_bundles()));
    for (int64_t row = first; row < end; ++row) {
      for (int64_t head = 0; head < n_heads_; ++head) {
        const float* made = row_of<float>(dst->src[0], groups.slot_of(row * n_heads_ + head, 0));
        std::copy_n(made, n_, layout.floats(dst, row) + head * n_);
      }
      layout.quantize(dst, row, 0, layout.n);
    }
  }

 private:
  const KernelSet& kernels_;
  ExpertGroups::Shape shape_;
  int n_heads_;
  int64_t n_;
};

}  // namespace

std::unique_ptr<CpuOp> head_routes_op(int n_heads) {
  return std::make_unique<HeadRoutesOp>(n_heads);
}

std::unique_ptr<CpuOp> split_heads_op(const KernelSet& kernels, int n_heads, int64_t stride, int64_t n) {
  return std::make_unique<SplitHeadsOp>(kernels, n_heads, stride, n);
}

std::unique_ptr<CpuOp> latent_heads_op(const KernelSet& kernels, const LatentHeadsOptions& options) {
  return std::make_unique<LatentHeadsOp>(kernels, options);
}

std::unique_ptr<CpuOp> join_heads_op(const KernelSet& kernels, const ExpertGroups::Shape& shape,
                                     int n_heads, int64_t n) {
  return std::make_unique<JoinHeadsOp>(kernels, shape, n_heads, n);
}

}  // namespace forerun
