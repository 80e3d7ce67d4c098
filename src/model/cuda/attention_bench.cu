// Times attention and the kernels for rows on the GPU: microseconds per call, in CUDA graphs of 32
// layers with caches of their own, for rows of an 8B model (32 heads, 8 KV heads of 128; width 4096;
// 14336 gates), and attention for many small heads and for Q8_0 caches too.
// Usage: attention_bench [context...]   (without: contexts from 1024 to 32000, and the kernels for rows)
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "model/cuda/attention.h"
#include "model/cuda/attention_items.h"
#include "model/cuda/bench_timing.h"
#include "model/cuda/device_array.h"
#include "model/cuda/product.h"
#include "model/cuda/rows.h"

namespace forerun::cuda {
namespace {

constexpr int kLayers = 32, kPromptRows = 512;
constexpr int kCounts[] = {1, 2, 4, 8, 16, 32, 64, kPromptRows};
constexpr AttentionShape kFewHeads{
    .head_dim = 128, .n_heads = 32, .n_kv_heads = 8, .scale = 0.08838835f, .soft_cap = 0.0f};
constexpr AttentionShape kManyHeads{
    .head_dim = 64, .n_heads = 69, .n_kv_heads = 23, .scale = 0.125f, .soft_cap = 0.0f};
constexpr int kWidth = 4096, kGates = 14336, kCellHalves = 1024;

double layer_us(const std::function<void(int layer, cudaStream_t)>& launch) {
  return microseconds(kLayers, launch);
}

void zero(void* data, size_t n_bytes) {
  check(cudaMemset(data, 0, n_bytes), "hold zeros");
}

// A chain of n rows behind a context.
void time_attention(const AttentionShape& shape, ggml_type cache_type, int context) {
  const int n_cells = context + kPromptRows, width = shape.n_heads * shape.head_dim;
  const int64_t row_bytes = cache_bytes(cache_type, int64_t{shape.n_kv_heads} * shape.head_dim);
  const auto layer_bytes = static_cast<size_t>(n_cells * row_bytes);
  const DeviceArray<std::byte> keys(layer_bytes * kLayers), values(layer_bytes * kLayers);
  zero(keys.get(), layer_bytes * kLayers);
  zero(values.get(), layer_bytes * kLayers);
  const int64_t n_inputs = (width + 255) / 256 * 256;
  const DeviceArray<__half> q(size_t{kPromptRows} * width);
  const DeviceArray<__half> x(static_cast<size_t>(operand_halves(kPromptRows, n_inputs)));
  zero(q.get(), size_t{kPromptRows} * width * sizeof(__half));

  constexpr struct {
    int item_chunks, n_tiles;  // 0: as chosen
    bool scattered;
  } kWays[] = {{0, 0, false},          {0, 0, true},  {1, 0, false}, {kGroup, 0, false},
               {kAllChunks, 0, false}, {0, 1, false}, {0, 2, false}, {0, kMostTiles, false}};
  for (const auto& [item_chunks, tiles, scattered] : kWays) {
    std::printf(
        "%d heads, %d KV heads of %d, %s, context %5d, %s cells, item_chunks %8d, tiles %d: attend us "
        "(GB/s) + merge us, both\n",
        shape.n_heads, shape.n_kv_heads, shape.head_dim, ggml_type_name(cache_type), context,
        scattered ? "scattered" : "neighbouring", item_chunks, tiles);
    for (const int n : kCounts) {
      std::vector<int32_t> cells(static_cast<size_t>(n_cells));
      std::iota(cells.begin(), cells.end(), 0);
      std::mt19937 random(1);
      if (scattered) std::shuffle(cells.begin(), cells.end(), random);
      std::vector<SeenCells> rows;
      for (int i = 0; i < n; ++i) {
        rows.push_back(
            {.shared = 0, .own = context, .n_shared = context, .first = 0, .end = context + i + 1});
      }
      const int chunks =
          item_chunks != 0 ? item_chunks : choose_item_chunks(rows, shape, int64_t{64} << 20);
      const int n_tiles =
          tiles != 0 ? tiles : choose_tiles(std::span<const SeenCells>(rows), shape, cache_type);
      AttentionItems items;
      make_attention_items(rows, shape.heads_per_kv(), chunks, n_tiles, items);
      const DeviceArray<int32_t> cells_on(cells), start_on(items.partial_start);
      const DeviceArray<SeenCells> rows_on(rows);
      const DeviceArray<AttentionItem> items_on(items.items);
      const DeviceArray<int32_t> n_items(std::vector<int32_t>{static_cast<int32_t>(items.items.size())});
      const DeviceArray<int32_t> item_chunks_on(std::vector<int32_t>{chunks});
      const DeviceArray<float> partials(static_cast<size_t>(items.n_floats(shape)));
      const auto work = [&](int layer) {
        const auto at = [&](const DeviceArray<std::byte>& cache) {
          return CacheRows{.data = cache.get() + static_cast<size_t>(layer) * layer_bytes,
                           .row_bytes = row_bytes};
        };
        return AttentionWork{.shape = shape,
                             .cache_type = cache_type,
                             .keys = at(keys),
                             .values = at(values),
                             .q = q.get(),
                             .cells = cells_on.get(),
                             .rows = rows_on.get(),
                             .items = items_on.get(),
                             .n_items = n_items.get(),
                             .most_items = static_cast<int>(items.items.size()),
                             .n_rows = n,
                             .n_tiles = n_tiles,
                             .item_chunks = item_chunks_on.get(),
                             .partial_start = start_on.get(),
                             .partials = partials.get()};
      };
      const Operand operand{.data = x.get(), .padded_rows = padded(n), .n_inputs = n_inputs};
      const double attend_us =
          layer_us([&](int layer, cudaStream_t stream) { attend(work(layer), stream); });
      const double merge_us =
          layer_us([&](int layer, cudaStream_t stream) { merge(work(layer), operand, stream); });
      const double both_us = layer_us([&](int layer, cudaStream_t stream) {
        attend(work(layer), stream);
        merge(work(layer), operand, stream);
      });
      std::printf("  n %3d (%d): %7.1f (%5.0f) + %5.1f, %7.1f\n", n, chunks, attend_us,
                  2.0 * static_cast<double>((context + n) * row_bytes) / attend_us * 1e-3, merge_us,
                  both_us);
    }
    std::fflush(stdout);
  }
}

// Parts as a product of F16 leaves them.
Parts parts_like(int n_outputs, int n_inputs, int n_rows, const float* data) {
  return parts_of(matrix_of(*format_of(GGML_TYPE_F16), n_inputs, n_outputs), n_rows, data);
}

void time_rows() {
  const size_t n_parts_floats = size_t{64} << 20;
  const DeviceArray<float> parts(n_parts_floats), states(size_t{kPromptRows} * kWidth), weight(kWidth);
  zero(parts.get(), n_parts_floats * sizeof(float));
  zero(states.get(), size_t{kPromptRows} * kWidth * sizeof(float));
  zero(weight.get(), kWidth * sizeof(float));
  const DeviceArray<__half> x(size_t{kPromptRows} * kGates), q(size_t{kPromptRows} * kWidth);
  const DeviceArray<std::byte> keys(size_t{2 * kPromptRows} * kCellHalves),
      values(size_t{2 * kPromptRows} * kCellHalves);
  const DeviceArray<float2> rope(size_t{kPromptRows} * 64);
  zero(rope.get(), size_t{kPromptRows} * 64 * sizeof(float2));
  std::vector<int64_t> cells(kPromptRows);
  std::iota(cells.begin(), cells.end(), 0);
  const DeviceArray<int64_t> cells_on(cells);
  std::printf("us: add_norm behind out and down, heads, gated\n");
  for (const int n : kCounts) {
    const auto norm_us = [&](int n_inputs) {
      const Segment added{
          .parts = parts_like(kWidth, n_inputs, n, parts.get()), .first = 0, .n = kWidth};
      return layer_us([&](int, cudaStream_t stream) {
        add_norm(states.get(), added, weight.get(), 1e-5f, {.n_rows = n, .n = kWidth}, states.get(),
                 {.data = x.get(), .padded_rows = padded(n), .n_inputs = kWidth}, stream);
      });
    };
    const Parts qkv = parts_like(6144, kWidth, n, parts.get());
    const HeadsWork heads_work{.q = {.parts = qkv, .first = 0, .n = 4096},
                               .k = {.parts = qkv, .first = 4096, .n = 1024},
                               .v = {.parts = qkv, .first = 5120, .n = 1024},
                               .n_rows = n,
                               .n_heads = 32,
                               .n_kv_heads = 8,
                               .head_dim = 128,
                               .q_norm = nullptr,
                               .k_norm = nullptr,
                               .eps = 1e-5f,
                               .rotates_pairs = false,
                               .n_rope_dims = 128,
                               .rope = rope.get(),
                               .cells = cells_on.get(),
                               .cache_type = GGML_TYPE_F16,
                               .keys = keys.get(),
                               .values = values.get(),
                               .cache_row_bytes = 2 * kCellHalves,
                               .q_out = q.get()};
    const double heads_us = layer_us([&](int, cudaStream_t stream) { heads(heads_work, stream); });
    const Parts gate_up = parts_like(2 * kGates, kWidth, n, parts.get());
    const double gated_us = layer_us([&](int, cudaStream_t stream) {
      gated(Gate::kSilu, {.parts = gate_up, .first = 0, .n = kGates},
            {.parts = gate_up, .first = kGates, .n = kGates}, {.n_rows = n, .n = kGates}, nullptr,
            {.data = x.get(), .padded_rows = padded(n), .n_inputs = kGates}, stream);
    });
    std::printf("  n %3d: %6.1f %6.1f %6.1f %6.1f\n", n, norm_us(kWidth), norm_us(kGates), heads_us,
                gated_us);
  }
}

}  // namespace
}  // namespace forerun::cuda

int main(int n_args, char** args) {
  if (!forerun::cuda::has_device()) {
    std::printf("no CUDA device\n");
    return 0;
  }
  std::vector<int> contexts;
  for (int i = 1; i < n_args; ++i) contexts.push_back(std::atoi(args[i]));
  if (contexts.empty()) {
    forerun::cuda::time_rows();
    contexts = {1024, 8192, 32000};
  }
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0}) {
    for (const int context : contexts) {
      forerun::cuda::time_attention(forerun::cuda::kFewHeads, type, context);
      forerun::cuda::time_attention(forerun::cuda::kManyHeads, type, context);
    }
  }
}
