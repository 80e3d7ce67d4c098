#include "model/cpu/attention_ops.h"

#include <array>

#include "model/cpu/activation_layout.h"
#include "model/cpu/chunk_shares.h"

namespace forerun {
namespace {

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
