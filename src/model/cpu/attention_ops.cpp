#include "model/cpu/attention_ops.h"

#include <ggml-cpu.h>

#include <array>
#include <cmath>

#include "model/cpu/activation_layout.h"
#include "model/cpu/chunk_shares.h"
#include "model/cpu/norm_ops.h"
#include "model/cpu/rotation.h"

namespace forerun {
namespace {

// --- rotation ---

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

// --- attention ---

std::span<const VisibleCells> visible(const AttendOptions& options) {
  return options.is_windowed ? options.rows->windowed() : options.rows->all();
}

int64_t floats_per_chunk(const AttentionShape& shape) {
  return int64_t{shape.n_heads} * (shape.head_dim + kPartialExtra);
}

class AttendOp final : public CpuOp {
 public:
  AttendOp(const KernelSet& kernels, const AttendOptions& options)
      : kernels_(kernels), options_(options) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    if (options_.by_chunk) {
      run_by_chunk(dst, worker);
    } else {
      run_by_rows(dst, worker);
    }
  }

 private:
  static constexpr int kMaxRowsPerUnit = 16;

  void run_by_chunk(ggml_tensor* dst, Worker worker) const {
    const auto rows = visible(options_);
    const ChunkShares shares(rows, options_.shape.n_kv_heads, worker.count);
    const int64_t partial = floats_per_chunk(options_.shape);
    shares.for_runs(worker.index, [&](const ChunkShares::Run& run) {
      attend(dst, run.rows, run.kv_head, run.chunks, run.partial * partial);
    });
  }

  // Units are dealt out in turn, since later ones see more.
  void run_by_rows(ggml_tensor* dst, Worker worker) const {
    const auto rows = visible(options_);
    const auto n_rows = static_cast<int>(rows.size());
    const int n_kv_heads = options_.shape.n_kv_heads;
    const int per_unit = std::clamp(n_rows * n_kv_heads / (4 * worker.count), 1, kMaxRowsPerUnit);
    const int n_row_units = (n_rows + per_unit - 1) / per_unit;
    for (int unit = worker.index; unit < n_row_units * n_kv_heads; unit += worker.count) {
      const Range part{.first = unit / n_kv_heads * per_unit,
                       .end = std::min((unit / n_kv_heads + 1) * per_unit, n_rows)};
      const Chunks chunks = seen_chunks(
          rows.subspan(static_cast<size_t>(part.first), static_cast<size_t>(part.end - part.first)));
      attend(dst, part, unit % n_kv_heads, chunks, 0);
    }
  }

  static CellRows cells(const ggml_tensor* cache) {
    return {.data = static_cast<const std::byte*>(cache->data),
            .row_bytes = cache->nb[1],
            .type = cache->type};
  }

  void attend(ggml_tensor* dst, Range rows, int kv_head, Chunks chunks, int64_t out_offset) const {
    const auto n_rows = static_cast<int>(rows.end - rows.first);
    thread_local std::vector<float> scratch;
    const size_t n_scratch = kernels_.attention_scratch_floats(options_.shape, n_rows);
    if (scratch.size() < n_scratch) scratch.resize(n_scratch);
    kernels_.attend({.shape = options_.shape,
                     .keys = cells(options_.keys),
                     .values = cells(options_.values),
                     .q = row_of<float>(dst->src[0], rows.first),
                     .q_stride = dst->src[0]->ne[0],
                     .rows = visible(options_).data() + rows.first,
                     .n_rows = n_rows,
                     .kv_head = kv_head,
                     .first_chunk = chunks.first,
                     .end_chunk = chunks.end,
                     .out = row_of<float>(dst, rows.first) + out_offset,
                     .out_row_stride = dst->ne[0],
                     .scratch = scratch.data()});
  }

  const KernelSet& kernels_;
  AttendOptions options_;
};

// What becomes of the partial results of one head of one row.
class HeadMerger {
 public:
  HeadMerger(const KernelSet& kernels, const AttendOptions& options, Worker worker)
      : kernels_(kernels),
        options_(options),
        shares_(visible(options), options.shape.n_kv_heads, worker.count) {}

  void merge(const ggml_tensor* partials, int64_t row, int64_t head, float* y) const {
    const AttentionShape& shape = options_.shape;
    const auto* sinks =
        options_.sinks != nullptr ? static_cast<const float*>(options_.sinks->data) : nullptr;
    const auto kv_head = static_cast<int>(head / (shape.n_heads / shape.n_kv_heads));
    kernels_.merge({.partials = row_of<float>(partials, row) + head * (shape.head_dim + kPartialExtra),
                    .n = options_.by_chunk ? shares_.n_partials(row, kv_head) : 1,
                    .stride = floats_per_chunk(shape),
                    .head_dim = shape.head_dim,
                    .sink = sinks != nullptr ? sinks + head : nullptr},
                   y);
  }

 private:
  const KernelSet& kernels_;
  const AttendOptions& options_;
  ChunkShares shares_;
};

class MergeOp final : public CpuOp {
 public:
  MergeOp(const KernelSet& kernels, const AttendOptions& options)
      : kernels_(kernels), options_(options) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const AttentionShape& shape = options_.shape;
    const ActivationLayout layout{kernels_, int64_t{shape.n_heads} * shape.head_dim, dst->ne[1]};
    const HeadMerger merger(kernels_, options_, worker);
    // As many heads at a time as make up whole blocks.
    int heads = 1;
    while (heads < shape.n_heads &&
           (heads * shape.head_dim % kActivationBlock != 0 || shape.n_heads % heads != 0)) {
      ++heads;
    }
    const int64_t n_units = shape.n_heads / heads;
    const auto [first, end] = share_of(worker, layout.n_bundles() * n_units);
    for (int64_t unit = first; unit < end; ++unit) {
      const int64_t bundle = unit / n_units;
      const auto [first_row, end_row] = layout.rows_of({.first = bundle, .end = bundle + 1});
      const int64_t head = unit % n_units * heads;
      for (int64_t row = first_row; row < end_row; ++row) {
        for (int64_t h = head; h < head + heads; ++h) {
          merger.merge(dst->src[0], row, h, layout.floats(dst, row) + h * shape.head_dim);
        }
        layout.quantize(dst, row, head * shape.head_dim, int64_t{heads} * shape.head_dim);
      }
    }
  }

 private:
  const KernelSet& kernels_;
  AttendOptions options_;
};

class MergeHeadsOp final : public CpuOp {
 public:
  MergeHeadsOp(const KernelSet& kernels, const AttendOptions& options, int64_t n)
      : kernels_(kernels), options_(options), n_(n) {}

  void run(ggml_tensor* dst, Worker worker) const override {
    const int n_heads = options_.shape.n_heads;
    const ActivationLayout layout{kernels_, n_, dst->ne[1]};
    const HeadMerger merger(kernels_, options_, worker);
    const auto [first, end] = layout.rows_of(share_of(worker, layout.n_bundles()));
    std::array<float, kMaxHeadDim> merged;
    for (int64_t i = first; i < end; ++i) {
      merger.merge(dst->src[0], i / n_heads, i % n_heads, merged.data());
      std::copy_n(merged.data(), n_, layout.floats(dst, i));
    }
  }

 private:
  const KernelSet& kernels_;
  AttendOptions options_;
  int64_t n_;
};

}  // namespace

std::unique_ptr<CpuOp> rope_table_op(const RopeConfig& rope, const ggml_tensor* factors) {
  return std::make_unique<RopeTableOp>(rope, factors);
}

std::unique_ptr<CpuOp> heads_op(const KernelSet& kernels, const HeadsOptions& options) {
  return std::make_unique<HeadsOp>(kernels, options);
}

int64_t partial_floats(const AttendOptions& options) {
  return floats_per_chunk(options.shape) * (options.by_chunk ? options.n_chunks : 1);
}

std::unique_ptr<CpuOp> attend_op(const KernelSet& kernels, const AttendOptions& options) {
  return std::make_unique<AttendOp>(kernels, options);
}

std::unique_ptr<CpuOp> merge_op(const KernelSet& kernels, const AttendOptions& options) {
  return std::make_unique<MergeOp>(kernels, options);
}

std::unique_ptr<CpuOp> merge_heads_op(const KernelSet& kernels, const AttendOptions& options,
                                      int64_t n) {
  return std::make_unique<MergeHeadsOp>(kernels, options, n);
}

}  // namespace forerun
