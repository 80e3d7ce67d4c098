#include "model/cpu/expert_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/check.h"

namespace forerun {
namespace {

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

void softmax(std::span<float> values) {
  const float largest = *std::ranges::max_element(values);
  float sum = 0;
  for (float& value : values) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (float& value : values) value /= sum;
}

int32_t* numbers_of(const ggml_tensor* groups) {
  return static_cast<int32_t*>(groups->data);
}

const ggml_tensor* last_source(const ggml_tensor* dst) {
  int n = 0;
  while (n < GGML_MAX_SRC && dst->src[n] != nullptr) ++n;
  return dst->src[n - 1];
}

// f(group, units of it) for a worker's share of the units of all groups, each of which has `n_units`.
template <typename F>
void for_share_of_groups(const ExpertGroups& groups, int64_t n_units, Worker worker, F f) {
  auto [at, end] = share_of(worker, groups.n_groups() * n_units);
  while (at < end) {
    const int64_t group = at / n_units, first = at % n_units;
    const int64_t n = std::min(n_units - first, end - at);
    f(groups.group(group), Range{.first = first, .end = first + n});
    at += n;
  }
}

class RouteOp final : public CpuOp {
 public:
  RouteOp(const ExpertsConfig& config, const ExpertWeights& experts)
      : config_(config), preference_(experts.preference), scales_(experts.scales) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ggml_tensor* scores = dst->src[0];
    const auto n_experts = static_cast<size_t>(scores->ne[0]);
    const auto [first, end] = share_of(worker, scores->ne[1]);
    std::vector<float> row(n_experts);
    for (int64_t i = first; i < end; ++i) {
      std::copy_n(row_of<float>(scores, i), n_experts, row.data());
      const std::span routes{row_of<Route>(dst, i), static_cast<size_t>(config_.n_used)};
      choose_experts(config_, row, floats_of(preference_), routes);
      if (scales_ == nullptr) continue;
      for (Route& route : routes) route.share *= floats_of(scales_)[route.expert];
    }
  }

 private:
  static const float* floats_of(const ggml_tensor* vector) {
    return vector != nullptr ? static_cast<const float*>(vector->data) : nullptr;
  }

  ExpertsConfig config_;
  const ggml_tensor* preference_;
  const ggml_tensor* scales_;
};

class GroupOp final : public CpuOp {
 public:
  explicit GroupOp(const ExpertGroups::Shape& shape) : shape_(shape) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    if (worker.index != 0) return;
    ExpertGroups(shape_, numbers_of(dst))
        .fill({static_cast<const Route*>(dst->src[0]->data), static_cast<size_t>(shape_.n_routes())});
  }

 private:
  ExpertGroups::Shape shape_;
};

class GatherOp final : public CpuOp {
 public:
  GatherOp(const KernelSet& kernels, const ExpertGroups::Shape& shape, int64_t n)
      : kernels_(kernels), shape_(shape), n_(n) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ActivationLayout from{kernels_, n_, shape_.n_rows}, to{kernels_, n_, shape_.most_slots()};
    const ExpertGroups groups(shape_, numbers_of(dst->src[1]));
    const auto [first, end] = to.rows_of(share_of(worker, to.n_bundles()));
    for (int64_t slot = first; slot < end; ++slot) {
      const int32_t row = groups.row_of_slot(slot);
      if (row < 0) {
        std::fill_n(to.floats(dst, slot), n_, 0.0f);
      } else {
        const float share =
            dst->src[2] == nullptr ? 1.0f : share_of_slot(dst->src[2], groups, row, slot);
        const float* x = from.floats(dst->src[0], row);
        float* y = to.floats(dst, slot);
        for (int64_t i = 0; i < n_; ++i) y[i] = x[i] * share;
      }
      to.quantize(dst, slot, 0, n_);
    }
  }

 private:
  float share_of_slot(const ggml_tensor* routes, const ExpertGroups& groups, int32_t row,
                      int64_t slot) const {
    int rank = 0;
    while (groups.slot_of(row, rank) != slot) ++rank;
    return row_of<Route>(routes, row)[rank].share;
  }

  const KernelSet& kernels_;
  ExpertGroups::Shape shape_;
  int64_t n_;
};

class ExpertGatedOp final : public CpuOp {
 public:
  ExpertGatedOp(const KernelSet& kernels, GateActivation activation, const ExpertGroups::Shape& shape,
                int64_t n_ff, std::vector<ProductPart> parts, bool is_gathered)
      : kernels_(kernels),
        shape_(shape),
        n_ff_(n_ff),
        is_gathered_(is_gathered),
        n_out_(parts.front().linear.packed->n_out / shape.n_experts),
        blocks_(kernels, activation, std::move(parts)) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const ActivationLayout layout{kernels_, n_ff_, dst->ne[1]};
    const ExpertGroups groups(shape_, numbers_of(last_source(dst)));
    const int64_t n_units = (n_ff_ + kActivationBlock - 1) / kActivationBlock;
    for_share_of_groups(groups, n_units, worker, [&](const ExpertGroups::Group& group, Range units) {
      const int64_t first = is_gathered_ ? group.first_slot : 0;
      blocks_.compute(dst, layout,
                      {.outputs = {.first = units.first * kActivationBlock,
                                   .end = std::min(units.end * kActivationBlock, n_ff_)},
                       .from = {.first = first, .end = first + group.n_rows},
                       .first_row = group.first_slot,
                       .first_out = group.expert * n_out_});
    });
  }
  bool takes_many_shares() const override { return true; }

 private:
  const KernelSet& kernels_;
  ExpertGroups::Shape shape_;
  int64_t n_ff_;
  bool is_gathered_;
  int64_t n_out_;  // of an expert, in a matrix
  GatedBlocks blocks_;
};

class ExpertProductOp final : public CpuOp {
 public:
  ExpertProductOp(const KernelSet& kernels, const ExpertGroups::Shape& shape, const ProductPart& part)
      : kernels_(kernels), shape_(shape), part_(part) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const PackedMatrix& matrix = *part_.linear.packed;
    const ExpertGroups groups(shape_, numbers_of(last_source(dst)));
    const int64_t n_out = dst->ne[0], n_tiles = n_out / matrix.lanes;
    for_share_of_groups(groups, n_tiles, worker, [&](const ExpertGroups::Group& group, Range tiles) {
      const Range rows{.first = group.first_slot, .end = group.first_slot + group.n_rows};
      const int64_t before = group.expert * n_tiles, first_out = tiles.first * matrix.lanes;
      float* y = row_of<float>(dst, rows.first) + first_out;
      matrix.multiply(before + tiles.first, before + tiles.end, operand_of(kernels_, part_, dst, rows),
                      y, n_out);
      const Range outputs{.first = group.expert * n_out + first_out,
                          .end = group.expert * n_out + tiles.end * matrix.lanes};
      for (int64_t row = rows.first; row < rows.end; ++row, y += n_out) {
        scale_and_bias(part_.linear, outputs, y);
      }
    });
  }
  bool takes_many_shares() const override { return true; }

 private:
  const KernelSet& kernels_;
  ExpertGroups::Shape shape_;
  ProductPart part_;
};

class CombineOp final : public CpuOp {
 public:
  CombineOp(const ExpertGroups::Shape& shape, float scale, bool weighs)
      : shape_(shape), scale_(scale), weighs_(weighs) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const int64_t n_parts = (dst->ne[0] + kColumns - 1) / kColumns;
    const auto [first, end] = share_of(worker, dst->ne[1] * n_parts);
    for (int64_t i = first; i < end; ++i) {
      const int64_t column = i % n_parts * kColumns;
      combine(dst, i / n_parts, {.first = column, .end = std::min(column + kColumns, dst->ne[0])});
    }
  }

 private:
  static constexpr int64_t kColumns = 256;

  void combine(ggml_tensor* dst, int64_t row, Range columns) const {
    const ggml_tensor *slots = dst->src[0], *states = dst->src[3], *shared = dst->src[4],
                      *shared_share = dst->src[5];
    const auto* routes = row_of<Route>(dst->src[1], row);
    const ExpertGroups groups(shape_, numbers_of(dst->src[2]));
    const int64_t n = columns.end - columns.first;
    std::array<float, static_cast<size_t>(kColumns)> sum{};
    const auto add = [&](const ggml_tensor* from, int64_t at, float share) {
      const float* x = row_of<float>(from, at) + columns.first;
      for (int64_t i = 0; i < n; ++i) sum[static_cast<size_t>(i)] += share * x[i];
    };
    for (int rank = 0; rank < shape_.n_used; ++rank) {
      add(slots, groups.slot_of(row, rank), weighs_ ? routes[rank].share : 1.0f);
    }
    if (shared != nullptr) {
      add(shared, row, shared_share != nullptr ? sigmoid(*row_of<float>(shared_share, row)) : 1.0f);
    }
    float* y = row_of<float>(dst, row) + columns.first;
    for (int64_t i = 0; i < n; ++i) y[i] = scale_ * sum[static_cast<size_t>(i)];
    if (states == nullptr) return;
    const float* x = row_of<float>(states, row) + columns.first;
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + y[i];
  }

  ExpertGroups::Shape shape_;
  float scale_;
  bool weighs_;
};

}  // namespace

void choose_experts(const ExpertsConfig& config, std::span<float> scores, const float* preference,
                    std::span<Route> routes) {
  if (config.gating == ExpertGating::kSoftmax) {
    softmax(scores);
  } else if (config.gating == ExpertGating::kSigmoid) {
    for (float& score : scores) score = sigmoid(score);
  }
  // Few of many: the best that is left, again and again. What is no number is never better.
  for (size_t rank = 0; rank < routes.size(); ++rank) {
    const auto is_taken = [&](size_t expert) {
      return std::ranges::any_of(routes.first(rank), [&](const Route& route) {
        return route.expert == static_cast<int32_t>(expert);
      });
    };
    size_t best = scores.size();
    float best_value = 0;
    for (size_t expert = 0; expert < scores.size(); ++expert) {
      const float value = scores[expert] + (preference != nullptr ? preference[expert] : 0.0f);
      if (best < scores.size() && !(value > best_value)) continue;
      if (is_taken(expert)) continue;
      best = expert;
      best_value = value;
    }
    routes[rank] = {.expert = static_cast<int32_t>(best), .share = scores[best]};
  }
  if (config.gating == ExpertGating::kSoftmaxOfChosen) {
    std::vector<float> shares;
    for (const Route& route : routes) shares.push_back(route.share);
    softmax(shares);
    for (size_t rank = 0; rank < routes.size(); ++rank) routes[rank].share = shares[rank];
  }
  float sum = 0;
  for (const Route& route : routes) sum += route.share;
  const float factor =
      config.scale / (config.normalises ? std::max(sum, ExpertsConfig::kLeastSum) : 1.0f);
  for (Route& route : routes) route.share *= factor;
}

void ExpertGroups::fill(std::span<const Route> routes) {
  std::vector<int32_t> next(
      static_cast<size_t>(shape_.n_experts));  // per expert: its rows, then its slot
  for (const Route& route : routes) ++next[static_cast<size_t>(route.expert)];
  auto* groups = reinterpret_cast<Group*>(data_ + 1);
  int32_t n_groups = 0, slot = 0;
  std::fill_n(rows(), shape_.most_slots(), -1);
  for (int32_t expert = 0; expert < shape_.n_experts; ++expert) {
    int32_t& n = next[static_cast<size_t>(expert)];
    if (n == 0) continue;
    groups[n_groups++] = {.expert = expert, .first_slot = slot, .n_rows = n};
    const int32_t together = shape_.rows_together;
    slot += (std::exchange(n, slot) + together - 1) / together * together;
  }
  CHECK(slot <= shape_.most_slots());
  data_[0] = n_groups;
  for (size_t i = 0; i < routes.size(); ++i) {
    const int32_t at = next[static_cast<size_t>(routes[i].expert)]++;
    slots()[i] = at;
    rows()[at] = static_cast<int32_t>(i) / shape_.n_used;
  }
}

std::unique_ptr<CpuOp> route_op(const ExpertsConfig& config, const ExpertWeights& experts) {
  return std::make_unique<RouteOp>(config, experts);
}

std::unique_ptr<CpuOp> group_op(const ExpertGroups::Shape& shape) {
  return std::make_unique<GroupOp>(shape);
}

std::unique_ptr<CpuOp> gather_op(const KernelSet& kernels, const ExpertGroups::Shape& shape, int64_t n) {
  return std::make_unique<GatherOp>(kernels, shape, n);
}

std::unique_ptr<CpuOp> expert_gated_op(const KernelSet& kernels, GateActivation activation,
                                       const ExpertGroups::Shape& shape, int64_t n_ff,
                                       std::vector<ProductPart> parts, bool is_gathered) {
  return std::make_unique<ExpertGatedOp>(kernels, activation, shape, n_ff, std::move(parts),
                                         is_gathered);
}

std::unique_ptr<CpuOp> expert_product_op(const KernelSet& kernels, const ExpertGroups::Shape& shape,
                                         const ProductPart& part) {
  return std::make_unique<ExpertProductOp>(kernels, shape, part);
}

std::unique_ptr<CpuOp> combine_op(const ExpertGroups::Shape& shape, float scale, bool weighs) {
  return std::make_unique<CombineOp>(shape, scale, weighs);
}

}  // namespace forerun
