#include "model/cpu/product_ops.h"

#include <ggml-cpu.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"

namespace forerun {
namespace {

const float* data_of(const ggml_tensor* vector) {
  return vector == nullptr ? nullptr : static_cast<const float*>(vector->data);
}

class ConvertOp final : public CpuOp {
 public:
  ConvertOp(ActivationLayout layout, ggml_type type) : layout_(layout), type_(type) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const auto convert = ggml_get_type_traits_cpu(type_)->from_float;
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t row = first; row < end; ++row) {
      convert(layout_.floats(dst->src[0], row), row_of<std::byte>(dst, row), layout_.n);
    }
  }

 private:
  ActivationLayout layout_;
  ggml_type type_;
};

class CopyRowsOp final : public CpuOp {
 public:
  void run(ggml_tensor* dst, Worker worker) const override {
    const ggml_tensor* chosen = dst->src[1];
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t row = first; row < end; ++row) {
      const int64_t from = chosen == nullptr ? row : static_cast<const int32_t*>(chosen->data)[row];
      std::copy_n(row_of<float>(dst->src[0], from), dst->ne[0], row_of<float>(dst, row));
    }
  }
};

class SoftCapOp final : public CpuOp {
 public:
  explicit SoftCapOp(float cap) : cap_(cap) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const auto [first, end] = share_of(worker, ggml_nelements(dst));
    const auto* x = static_cast<const float*>(dst->src[0]->data);
    auto* y = static_cast<float*>(dst->data);
    for (int64_t i = first; i < end; ++i) y[i] = cap_ * std::tanh(x[i] * (1.0f / cap_));
  }
  bool takes_many_shares() const override { return true; }

 private:
  float cap_;
};

class ScaleOp final : public CpuOp {
 public:
  explicit ScaleOp(const ggml_tensor* factor) : factor_(factor) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const float factor = *data_of(factor_);
    const auto [first, end] = share_of(worker, dst->ne[1]);
    for (int64_t row = first; row < end; ++row) {
      const float* x = row_of<float>(dst->src[0], row);
      float* y = row_of<float>(dst, row);
      for (int64_t i = 0; i < dst->ne[0]; ++i) y[i] = x[i] * factor;
    }
  }

 private:
  const ggml_tensor* factor_;
};

class GateOp final : public CpuOp {
 public:
  GateOp(const KernelSet& kernels, GateActivation activation, int64_t first)
      : kernels_(kernels), activation_(activation), first_(first) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ggml_tensor* gates = dst->src[0];
    const ActivationLayout layout{kernels_, gates->ne[0], gates->ne[1]};
    const auto [first, end] = layout.rows_of(share_of(worker, layout.n_bundles()));
    for (int64_t row = first; row < end; ++row) {
      kernels_.gate(activation_, row_of<float>(gates, row), row_of<float>(dst->src[1], row) + first_,
                    layout.n, layout.floats(dst, row));
      layout.quantize(dst, row, 0, layout.n);
    }
  }

 private:
  const KernelSet& kernels_;
  GateActivation activation_;
  int64_t first_;
};

class ProductOp final : public CpuOp {
 public:
  ProductOp(const KernelSet& kernels, std::vector<ProductPart> parts, bool adds_residual)
      : kernels_(kernels), parts_(std::move(parts)), adds_residual_(adds_residual) {
    for (const ProductPart& part : parts_) {
      n_tiles_ += part.linear.packed->n_tiles();
      if (adds_residual_) residual_source_ = std::max(residual_source_, part.source + 1);
    }
  }

  void run(ggml_tensor* dst, Worker worker) const override {
    auto [first, end] = share_of(worker, n_tiles_);
    int64_t offset = 0;
    for (const ProductPart& part : parts_) {
      const int64_t n = part.linear.packed->n_tiles();
      if (first < n && end > 0) {
        multiply(dst, part, offset, {.first = std::max<int64_t>(first, 0), .end = std::min(end, n)});
      }
      first -= n;
      end -= n;
      offset += part.linear.packed->n_out;
    }
  }
  bool takes_many_shares() const override { return true; }

 private:
  void multiply(ggml_tensor* dst, const ProductPart& part, int64_t offset, Range tiles) const {
    const PackedMatrix& matrix = *part.linear.packed;
    const int64_t n_rows = dst->ne[1];
    const Range outputs{.first = tiles.first * matrix.lanes,
                        .end = std::min(tiles.end * matrix.lanes, matrix.n_out)};
    offset += outputs.first;
    float* y = static_cast<float*>(dst->data) + offset;
    matrix.multiply(tiles.first, tiles.end, operand_of(kernels_, part, dst, {.first = 0, .end = n_rows}),
                    y, dst->ne[0]);
    for (int64_t row = 0; row < n_rows; ++row, y += dst->ne[0]) {
      scale_and_bias(part.linear, outputs, y);
      if (!adds_residual_) continue;
      const float* residual = row_of<float>(dst->src[residual_source_], row) + offset;
      for (int64_t i = 0; i < outputs.end - outputs.first; ++i) y[i] += residual[i];
    }
  }

  const KernelSet& kernels_;
  std::vector<ProductPart> parts_;
  bool adds_residual_;
  int residual_source_ = 0;
  int64_t n_tiles_ = 0;
};

class GatedOp final : public CpuOp {
 public:
  GatedOp(const KernelSet& kernels, GateActivation activation, std::vector<ProductPart> parts)
      : kernels_(kernels),
        n_out_(parts.front().linear.packed->n_out),
        blocks_(kernels, activation, std::move(parts)) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    // Whole blocks per worker, so that it can quantise what it made.
    const ActivationLayout layout{kernels_, n_out_, dst->ne[1]};
    const auto [first, end] = share_of(worker, (n_out_ + kActivationBlock - 1) / kActivationBlock);
    const Range outputs{.first = first * kActivationBlock,
                        .end = std::min(end * kActivationBlock, n_out_)};
    blocks_.compute(dst, layout,
                    {.outputs = outputs, .from = {.first = 0, .end = dst->ne[1]}, .first_row = 0});
  }
  bool takes_many_shares() const override { return true; }

 private:
  const KernelSet& kernels_;
  int64_t n_out_;
  GatedBlocks blocks_;
};

}  // namespace

GateActivation gate_activation(Activation activation) {
  switch (activation) {
    case Activation::kSilu: return GateActivation::kSilu;
    case Activation::kGelu: return GateActivation::kGelu;
    case Activation::kReluSquared: return GateActivation::kReluSquared;
    case Activation::kLimitedSwish: return GateActivation::kLimitedSwish;
  }
  return GateActivation::kSilu;
}

OperandRows operand_of(const KernelSet& kernels, const ProductPart& part, const ggml_tensor* dst,
                       Range rows) {
  const ggml_tensor* source = dst->src[part.source];
  const PackedMatrix& matrix = *part.linear.packed;
  const ActivationLayout layout{kernels, matrix.n_in, source->ne[1]};
  if (matrix.reads_floats()) return layout.float_rows(source, rows);
  if (matrix.format != nullptr) return layout.block_rows(source, rows);
  return {.data = row_of<std::byte>(source, rows.first),
          .stride = source->nb[1],
          .rows_together = 1,
          .n_rows = static_cast<int>(rows.end - rows.first)};
}

void scale_and_bias(const Linear& linear, Range outputs, float* y) {
  const int64_t n = outputs.end - outputs.first;
  if (linear.scale != nullptr) {
    const float scale = *data_of(linear.scale);
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
  if (linear.bias != nullptr) {
    const float* bias = data_of(linear.bias) + outputs.first;
    for (int64_t i = 0; i < n; ++i) y[i] += bias[i];
  }
}

namespace {

// Outputs and rows at a time: their gates and ups lie on the stack, in the first cache.
constexpr int64_t kGatedRows = 32;
constexpr int64_t kGatedOutputs = 4 * kActivationBlock;

}  // namespace

GatedBlocks::GatedBlocks(const KernelSet& kernels, GateActivation activation,
                         std::vector<ProductPart> parts)
    : kernels_(kernels), activation_(activation), parts_(std::move(parts)) {
  CHECK(parts_.size() == 1 || parts_.size() == 2);
  CHECK(kActivationBlock % kernels.lanes == 0 && kGatedRows % kernels.rows_together == 0);
}

void GatedBlocks::compute(ggml_tensor* dst, const ActivationLayout& layout, const Part& part) const {
  for (int64_t out = part.outputs.first; out < part.outputs.end; out += kGatedOutputs) {
    for (int64_t row = part.from.first; row < part.from.end; row += kGatedRows) {
      compute_few(dst, layout,
                  {.outputs = {.first = out, .end = std::min(out + kGatedOutputs, part.outputs.end)},
                   .from = {.first = row, .end = std::min(row + kGatedRows, part.from.end)},
                   .first_row = part.first_row + row - part.from.first,
                   .first_out = part.first_out});
    }
  }
}

void GatedBlocks::compute_few(ggml_tensor* dst, const ActivationLayout& layout, const Part& part) const {
  std::array<float, static_cast<size_t>(kGatedRows * kGatedOutputs)> gates;
  std::array<float, static_cast<size_t>(kGatedRows * kGatedOutputs)> ups;
  const Range& outputs = part.outputs;
  const int64_t n = outputs.end - outputs.first, n_rows = part.from.end - part.from.first;
  const auto project = [&](const ProductPart& product, float* y) {
    const PackedMatrix& matrix = *product.linear.packed;
    const int64_t before = part.first_out + product.first;
    const Range all{.first = before + outputs.first, .end = before + outputs.end};
    matrix.multiply(all.first / matrix.lanes, (all.end + matrix.lanes - 1) / matrix.lanes,
                    operand_of(kernels_, product, dst, part.from), y, kGatedOutputs);
    for (int64_t r = 0; r < n_rows; ++r) scale_and_bias(product.linear, all, y + r * kGatedOutputs);
  };
  const bool has_ups = parts_.size() == 2;
  project(parts_[0], gates.data());
  if (has_ups) project(parts_[1], ups.data());
  for (int64_t r = 0; r < n_rows; ++r) {
    const int64_t row = part.first_row + r;
    kernels_.gate(activation_, gates.data() + r * kGatedOutputs,
                  has_ups ? ups.data() + r * kGatedOutputs : nullptr, n,
                  layout.floats(dst, row) + outputs.first);
    layout.quantize(dst, row, outputs.first, n);
  }
}

std::unique_ptr<CpuOp> convert_op(ActivationLayout layout, ggml_type type) {
  return std::make_unique<ConvertOp>(layout, type);
}

std::unique_ptr<CpuOp> copy_rows_op() {
  return std::make_unique<CopyRowsOp>();
}

std::unique_ptr<CpuOp> soft_cap_op(float cap) {
  return std::make_unique<SoftCapOp>(cap);
}

std::unique_ptr<CpuOp> scale_op(const ggml_tensor* factor) {
  return std::make_unique<ScaleOp>(factor);
}

std::unique_ptr<CpuOp> gate_op(const KernelSet& kernels, GateActivation activation, int64_t first) {
  return std::make_unique<GateOp>(kernels, activation, first);
}

std::unique_ptr<CpuOp> product_op(const KernelSet& kernels, std::vector<ProductPart> parts,
                                  bool adds_residual) {
  return std::make_unique<ProductOp>(kernels, std::move(parts), adds_residual);
}

std::unique_ptr<CpuOp> gated_op(const KernelSet& kernels, GateActivation activation,
                                std::vector<ProductPart> parts) {
  return std::make_unique<GatedOp>(kernels, activation, std::move(parts));
}

}  // namespace forerun
