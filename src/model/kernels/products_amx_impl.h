// Products of many rows with AMX tiles: the same sums in the same order as products_impl.h
// makes them, but the dot products of 16 rows with kLanes outputs are one instruction.
//
// Every 32 inputs have a scale, so each of these products goes through memory to be scaled,
// and loading and storing tiles takes turns with the vector operations that do it: the
// two add up, whatever the order. What remains is to do nothing else in between. So
// weights are unpacked once for all rows, activations are laid out once for all tiles of
// outputs, and both lie in the first cache while they are used, a chunk of inputs at a
// time:
//
//   for some tiles of outputs, for some rows:
//     for each chunk of inputs:
//       lay out the rows' activations
//       for each tile of outputs:
//         unpack its weights
//         for each 16 rows: add their products to their sums
#pragma once

#include "model/kernels/products_unpacked_impl.h"
#include "model/kernels/tiles_amx.h"

namespace forerun::kernels::FORERUN_ISA {

// With fewer rows it takes as long to unpack weights for tiles as to multiply without them.
constexpr int kMinTileRows = 28;
// So many rows more than a multiple of 16 are not worth a tile.
constexpr int kMaxVectorRows = kMaxRows;

constexpr int kChunkSteps = 8;
constexpr int kRowTiles = 4;      // of 16 rows, at a time
constexpr int kOutputTiles = 16;  // at a time

// A chunk of 16 rows of activations.
struct RowScale {
  float scale, scaled_sum;
};
struct alignas(64) TileRows {
  int8_t q[kChunkSteps][kTileLines][kActivationBlock];
  RowScale scales[kChunkSteps][kTileLines];
};

struct alignas(64) TileSums {
  float of[kTileLines][kLanes];
};

inline void lay_out_rows(const RowGroup& x, int n_rows, int n_steps, TileRows& to) {
  for (int r = 0; r < n_rows; ++r) {
    for (int step = 0; step < n_steps; ++step) {
      const ActivationBlock& block = x.block(r, step);
      const RowScale scale{block.scale, block.scaled_sum};
      memcpy(to.q[step][r], block.q, kActivationBlock);
      memcpy(&to.scales[step][r], &scale, sizeof(scale));
    }
  }
}

// A chunk of a tile of weights times one of 16 rows. Products of kScaleGroup inputs are
// counted by i; there is an even number of them.
template <typename Steps>
class ChunkProduct {
 public:
  ChunkProduct(const typename Steps::Packed* weights, const TileRows& rows)
      : weights_(weights), rows_(rows) {}

  // Each product begins before the last one is stored, and is scaled after that.
  __attribute__((noinline)) void add_to(TileSums& to, int n, Prefetcher ahead) const {
    TileDots dots[2];
    Floats sums[kTileLines];
    begin<0>(0);
#pragma GCC unroll 16
    for (int r = 0; r < kTileLines; ++r) sums[r] = load(to.of[r]);
    begin<1>(1);
    store_dots<0>(dots[0]);
    for (int i = 2; i < n; i += 2) {
      ahead.fetch(2);
      begin<0>(i);
      store_dots<1>(dots[1]);
      add(dots[0], i - 2, sums);
      begin<1>(i + 1);
      store_dots<0>(dots[0]);
      add(dots[1], i - 1, sums);
    }
    ahead.fetch(2);
    store_dots<1>(dots[1]);
    add(dots[0], n - 2, sums);
    add(dots[1], n - 1, sums);
#pragma GCC unroll 16
    for (int r = 0; r < kTileLines; ++r) store(to.of[r], sums[r]);
  }

 private:
  static constexpr int kGroups = Steps::kScaleGroups;

  template <int kTile>
  void begin(int i) const {
    const int step = i / kGroups, first = i % kGroups * Steps::kScaleGroup;
    begin_dots<kTile, kActivationBlock>(rows_.q[step][0] + first, weights_[step].quants + first / 4);
  }

  void add(const TileDots& dots, int i, Floats* sums) const {
    const RowScale* x = rows_.scales[i / kGroups];
    const StepScale& scale = weights_[i / kGroups].scales[i % kGroups];
#pragma GCC unroll 16
    for (int r = 0; r < kTileLines; ++r) {
      const Floats scaled = fma(load_dots(dots.bits[r]), scale.scale, scale.base);
      sums[r] = fma(scaled, broadcast(x[r].scale), sums[r]);
    }
    if constexpr (Steps::kHasMinimum) {
      const Floats minimum = load(weights_[i / kGroups].minimums);
#pragma GCC unroll 16
      for (int r = 0; r < kTileLines; ++r) {
        sums[r] = fma(minimum, broadcast(x[r].scaled_sum), sums[r]);
      }
    }
  }

  const typename Steps::Packed* weights_;
  const TileRows& rows_;
};

// Up to kOutputTiles tiles of weights times up to kRowTiles * 16 rows: block i_block of the
// n_blocks that these tiles are multiplied with.
template <typename Format>
class TileBlock {
 public:
  TileBlock(const ProductArgs& args, int i_block, int n_blocks)
      : args_(args),
        n_parts_(args.n_blocks * kParts),
        tile_bytes_(args.n_blocks * sizeof(typename Format::Packed)),
        n_row_tiles_((args.n_rows + kTileLines - 1) / kTileLines),
        i_block_(i_block),
        n_blocks_(n_blocks) {}

  void multiply() {
    memset(sums_, 0, args_.n_tiles * n_row_tiles_ * sizeof(sums_[0]));
    if (args_.n_rows % kTileLines != 0) memset(&rows_[n_row_tiles_ - 1], 0, sizeof(TileRows));
    for (int64_t first = 0; first < n_parts_; first += kChunkParts) {
      add_chunk(first,
                static_cast<int>(n_parts_ - first < kChunkParts ? n_parts_ - first : kChunkParts));
    }
    for (int r = 0; r < args_.n_rows; ++r) {
      for (int64_t t = 0; t < args_.n_tiles; ++t) {
        store(args_.y + r * args_.y_stride + t * kLanes,
              load(sums(t, r / kTileLines).of[r % kTileLines]));
      }
    }
  }

 private:
  static constexpr int kParts = BlockProduct<Format>::kParts;
  static constexpr int kChunkParts = kChunkSteps / Format::kPartSteps;
  using SignedWeights = Unpacked<Format, true>;
  using Steps = typename SignedWeights::Steps;
  static constexpr int kGroups = Steps::kScaleGroups;
  static constexpr size_t kPartBytes = (sizeof(typename Format::Packed) + kParts - 1) / kParts;

  void add_chunk(int64_t first, int n_parts) {
    const int n_steps = n_parts * Format::kPartSteps;
    for (int i = 0; i < n_row_tiles_; ++i) {
      const int n_rows = args_.n_rows - i * kTileLines;
      const RowGroup x{args_.x + i * kTileLines * args_.x_stride +
                           first * Format::kPartSteps * sizeof(ActivationBlock),
                       args_.x_stride};
      lay_out_rows(x, n_rows < kTileLines ? n_rows : kTileLines, n_steps, rows_[i]);
    }
    int n_products = n_steps * kGroups;
    if (n_products % 2 != 0) add_zeros(n_products++);
    for (int64_t t = 0; t < args_.n_tiles; ++t) {
      const std::byte* tile = args_.tiles + t * tile_bytes_;
      const auto* blocks = reinterpret_cast<const typename Format::Packed*>(tile);
      auto* to = weights_;
      for (int64_t p = first; p < first + n_parts; ++p) {
        to = SignedWeights::make(blocks[p / kParts], static_cast<int>(p % kParts), to);
      }
      const size_t share = (fetched_bytes(n_parts) + n_row_tiles_ - 1) / n_row_tiles_;
      for (int i = 0; i < n_row_tiles_; ++i) {
        const Prefetcher ahead(fetched_first(tile, first) + i * share,
                               (share + n_products - 1) / n_products);
        ChunkProduct<Steps>(weights_, rows_[i]).add_to(sums(t, i), n_products, ahead);
      }
    }
  }

  // Without gaps, so that they spread over the sets of the cache.
  TileSums& sums(int64_t tile, int row_tile) { return sums_[tile * n_row_tiles_ + row_tile]; }

  // A step more, which adds nothing.
  void add_zeros(int step) {
    weights_[step].scales[0] = StepScale(broadcast(0.0f));
    store(weights_[step].minimums, broadcast(0.0f));
    for (TileRows& rows : rows_) memset(rows.scales[step], 0, sizeof(rows.scales[step]));
  }

  // Weights to fetch while those of a tile from part `first` on are multiplied: those that
  // this tile is multiplied with next or, if there are several blocks of rows, a part of
  // those of the tiles after these.
  const std::byte* fetched_first(const std::byte* tile, int64_t first) const {
    const std::byte* after = tile + args_.n_tiles * tile_bytes_;
    if (n_blocks_ > 1) return after + first * kPartBytes + i_block_ * fetched_bytes(kChunkParts);
    return first + kChunkParts < n_parts_ ? tile + (first + kChunkParts) * kPartBytes : after;
  }
  size_t fetched_bytes(int n_parts) const { return (n_parts * kPartBytes + n_blocks_ - 1) / n_blocks_; }

  const ProductArgs& args_;
  int64_t n_parts_;
  size_t tile_bytes_;
  int n_row_tiles_;
  int i_block_, n_blocks_;
  alignas(64) typename Steps::Packed weights_[kChunkSteps];
  TileRows rows_[kRowTiles];
  TileSums sums_[kOutputTiles * kRowTiles];
};

// As multiply(): activations that stay in the second cache, then tiles of weights, then rows.
template <typename Format>
void multiply_by_tiles(const ProductArgs& args) {
  if (args.n_rows < kMinTileRows) return multiply_few_or_many<Format, BlockProduct>(args);
  const TileScope scope(Format::kScaleGroup);
  const size_t tile_bytes = args.n_blocks * sizeof(typename Format::Packed);
  const size_t row_bytes =
      args.n_blocks * (Format::kBlockSize / kActivationBlock) * sizeof(ActivationBlock);
  const int n_rest = args.n_rows % kTileLines <= kMaxVectorRows ? args.n_rows % kTileLines : 0;
  const int n_rows = args.n_rows - n_rest;
  constexpr int kBlockRows = kRowTiles * kTileLines;
  int chunk_rows = static_cast<int>(kCachedRows / row_bytes) / kBlockRows * kBlockRows;
  if (chunk_rows < kBlockRows) chunk_rows = kBlockRows;
  for (int begin = 0; begin < n_rows; begin += chunk_rows) {
    const int end = n_rows - begin < chunk_rows ? n_rows : begin + chunk_rows;
    const int n_row_tiles = (end - begin + kTileLines - 1) / kTileLines;
    const int n_blocks = (n_row_tiles + kRowTiles - 1) / kRowTiles;
    for (int64_t first = 0; first < args.n_tiles; first += kOutputTiles) {
      ProductArgs part = args;
      part.tiles += first * tile_bytes;
      part.n_tiles = args.n_tiles - first < kOutputTiles ? args.n_tiles - first : kOutputTiles;
      const auto take_rows = [&](int row, int n) {
        part.x = args.x + row * args.x_stride;
        part.y = args.y + row * args.y_stride + first * kLanes;
        part.n_rows = n;
      };
      for (int b = 0; b < n_blocks; ++b) {
        const int row = begin + n_row_tiles * b / n_blocks * kTileLines;
        const int next = begin + n_row_tiles * (b + 1) / n_blocks * kTileLines;
        take_rows(row, (next < end ? next : end) - row);
        TileBlock<Format>(part, b, n_blocks).multiply();
      }
      if (end == n_rows && n_rest > 0) {
        take_rows(n_rows, n_rest);
        multiply<Format, BlockProduct<Format>>(part);
      }
    }
  }
}

}  // namespace forerun::kernels::FORERUN_ISA
