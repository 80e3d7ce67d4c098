// The loops of a product: tiles of weights, groups of rows, blocks of weights.
//
// A weight type is a struct with what the loops need to know of it ("format"; see
// formats_*_impl.h). Those that are multiplied with ActivationBlocks have
//
//   kType, kBlockSize   as in WeightFormat
//   kPartSteps          a block is made of parts of so many steps, and a step of 32 weights
//   kOffset             what is subtracted from quants as they are unpacked
//   kMaxWeight          the largest of them; 255 if they are signed (see dot16)
//   kScaleGroup         weights that share a scale: 16 or 32
//   kHasMinimum         whether 32 weights share something that is added to them
//   Source              a block of one output as in the file
//   Packed              a block of kLanes outputs
//   pack(source, lane, packed)
//   unpack<step, half>(packed, part, w)   16 weights of each output, in the order of byte_place()
//   scale<step, half>(packed, part)       of these, or of the whole step
//   minimum<step>(packed, part)
//
// Row invariance: a row's outputs are sums over steps in order, each in a lane of its
// own. What is added per step (or half of one, if scales are) is
//
//   fma(round(scale * dot), x.scale, sum), then fma(minimum, x.scaled_sum, sum),
//
// with the integer dot = sum of (quant - kOffset) * x.q, which is exact. (Quants may be
// unpacked as multiples by a power of two, which the scale takes back, exactly too.) The
// number of rows only decides for how many of them a block is unpacked at once.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/kernels.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kVectorBytes = 4 * kLanes;
constexpr int kHalfStep = kActivationBlock / 2;

// Where the quant of input k lies among those of all outputs of a tile, a byte each.
constexpr int byte_place(int k, int lane) {
  return k / kInputsTogether * kInputsTogether * kLanes + lane * kInputsTogether + k % kInputsTogether;
}

// Sums of integers begin at the bits of this number, and are then the bits of
// kSumBase + sum, as long as |sum| < 2^22. An fma takes kSumBase away again while it
// multiplies, which saves a conversion: kSumBase * scale is exact, since scales have no
// more than 17 significant bits.
constexpr float kSumBase = 0x1.8p23f;
constexpr int32_t kSumBaseBits = 0x4B400000;

// Rows of activations to be multiplied at once, at the same block.
struct RowGroup {
  const std::byte* data;
  size_t stride;  // from row to row

  const ActivationBlock& block(int row, int step) const {
    return reinterpret_cast<const ActivationBlock*>(data + row * stride)[step];
  }
  // The scale of a block, then its scaled sum.
  Four factors(int row, int step) const {
    static_assert(offsetof(ActivationBlock, scale) + sizeof(float) ==
                  offsetof(ActivationBlock, scaled_sum));
    return load_four(&block(row, step).scale);
  }
  const float* numbers(int row) const { return reinterpret_cast<const float*>(data + row * stride); }
};

// The first or second 16 weights of a step, for all rows. They begin new dot products,
// or go on with those of the first half.
template <typename Format, int kStep, int kHalf, int kRows>
inline void dot_half(const typename Format::Packed& packed, int part, const RowGroup& x, Ints* dots) {
  constexpr bool kWholeStep = Format::kScaleGroup == kActivationBlock;
  Bytes w[4];
  Format::template unpack<kStep, kHalf>(packed, part, w);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const ActivationBlock& block = x.block(r, kStep);
    if constexpr (kHalf == 0 || !kWholeStep) {
      if constexpr (Format::kOffset == 0) {
        dots[r] = constant_ints<kSumBaseBits>();
      } else {
        const int32_t sum = kWholeStep   ? block.sum
                            : kHalf == 0 ? block.first_half_sum
                                         : block.sum - block.first_half_sum;
        dots[r] = broadcast_int(kSumBaseBits - Format::kOffset * sum);
      }
    }
    dots[r] = dot16<Format::kMaxWeight>(dots[r], w, block.q + kHalf * kHalfStep);
  }
}

// What the dot products of a step, or of half of one, are scaled with.
struct StepScale {
  Floats scale;
  Floats base;  // what the fma takes away with kSumBase

  StepScale() = default;
  explicit StepScale(Floats s) : scale(s), base(mul(s, broadcast(-kSumBase))) {}
};

// A reference to where it lies, if it was computed before.
template <typename Format, int kStep, int kHalf>
inline decltype(auto) step_scale(const typename Format::Packed& packed, int part) {
  if constexpr (requires { Format::template step_scale<kStep, kHalf>(packed, part); }) {
    return Format::template step_scale<kStep, kHalf>(packed, part);
  } else {
    return StepScale(Format::template scale<kStep, kHalf>(packed, part));
  }
}

template <int kStep, int kRows>
inline void add_dots(const Ints* dots, const StepScale& step, const RowGroup& x, Floats* sums) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Floats dot = as_floats(dots[r]);
    const Floats scaled =
        kRows > 1 ? fma_keeping(dot, step.scale, step.base) : fma(dot, step.scale, step.base);
    sums[r] = fma_by<0>(scaled, x.factors(r, kStep), sums[r]);
  }
}

// 32 inputs, or 16 of them, of all rows.
template <typename Format, int kStep, int kHalf, int kRows>
inline void add_scaled_dots(const typename Format::Packed& packed, int part, const RowGroup& x,
                            Ints* dots, Floats* sums) {
  constexpr bool kWholeStep = Format::kScaleGroup == kActivationBlock;
  const auto add_all_dots = [&] {
    if constexpr (kWholeStep) dot_half<Format, kStep, 0, kRows>(packed, part, x, dots);
    dot_half<Format, kStep, kHalf, kRows>(packed, part, x, dots);
  };
  if constexpr (kScalesFirst && kRows > 1) {
    const StepScale& scale = step_scale<Format, kStep, kHalf>(packed, part);
    add_all_dots();
    add_dots<kStep, kRows>(dots, scale, x, sums);
  } else {
    add_all_dots();
    add_dots<kStep, kRows>(dots, step_scale<Format, kStep, kHalf>(packed, part), x, sums);
  }
}

// The steps of a part, from kStep on.
template <typename Format, int kRows, int kStep = 0>
inline void add_steps(const typename Format::Packed& packed, int part, const RowGroup& x, Floats* sums) {
  Ints dots[kRows];
  if constexpr (Format::kScaleGroup == kHalfStep) {
    add_scaled_dots<Format, kStep, 0, kRows>(packed, part, x, dots, sums);
  }
  add_scaled_dots<Format, kStep, 1, kRows>(packed, part, x, dots, sums);
  if constexpr (Format::kHasMinimum) {
    const Floats minimum = Format::template minimum<kStep>(packed, part);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sums[r] = fma_by<1>(minimum, x.factors(r, kStep), sums[r]);
  }
  if constexpr (kStep + 1 < Format::kPartSteps)
    add_steps<Format, kRows, kStep + 1>(packed, part, x, sums);
}

// Fetches the weights that come next while others are multiplied, a few bytes per part of
// a block. It may run past the end of the weights, which does no harm.
class Prefetcher {
 public:
  Prefetcher(const std::byte* first, size_t bytes_per_part)
      : next_(first), until_(first), bytes_per_part_(bytes_per_part) {}

  void fetch(int n_parts) {
    until_ += n_parts * bytes_per_part_;
    for (; next_ < until_; next_ += kLineBytes) __builtin_prefetch(next_, 0, kPrefetchLocality);
  }

 private:
  static constexpr size_t kLineBytes = 64;
  const std::byte* next_;
  const std::byte* until_;
  size_t bytes_per_part_;
};

// One tile times a few rows, or some blocks of it. Sums of the earlier blocks are in
// `waiting`, kChains vectors of a row, and go there again until the last blocks are added.
struct GroupArgs {
  const std::byte* tile;
  int64_t n_blocks;
  RowGroup x;
  Prefetcher ahead;
  float* y;
  int64_t y_stride;
  float* waiting = nullptr;
  bool is_first = true, is_last = true;

  template <int kVectors>
  void begin(Floats (&sums)[kVectors]) const {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) {
      sums[i] = is_first ? broadcast(0.0f) : load(waiting + i * kLanes);
    }
  }
  template <int kVectors>
  void wait(const Floats (&sums)[kVectors]) const {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) store(waiting + i * kLanes, sums[i]);
  }
};

// Quantised weights times ActivationBlocks.
template <typename Format>
struct BlockProduct {
  using Block = ActivationBlock;
  static constexpr Operand kOperand = Operand::kBlocks;
  static constexpr int kRowsTogether = Block::kRows;
  static constexpr int kParts = Format::kBlockSize / kActivationBlock / Format::kPartSteps;
  static constexpr size_t kPartOperandBytes = Format::kPartSteps * sizeof(Block);
  static constexpr int kMaxGroup = kMaxRows;
  static constexpr int kChains = 1;

  template <int kRows>
  __attribute__((noinline)) static void multiply(GroupArgs args) {
    const auto* blocks = reinterpret_cast<const typename Format::Packed*>(args.tile);
    Floats sums[kRows];
    args.begin(sums);
    for (int64_t b = 0; b < args.n_blocks; ++b) {
#pragma GCC unroll 1
      for (int part = 0; part < kParts; ++part) {
        args.ahead.fetch(1);
        add_steps<Format, kRows>(blocks[b], part, args.x, sums);
        args.x.data += kPartOperandBytes;
      }
    }
    if (!args.is_last) return args.wait(sums);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) store(args.y + r * args.y_stride, sums[r]);
  }
};

// Weights that are numbers, times floats. A row's sum is two chains, so that they need not
// wait for each other: even inputs and odd ones. More chains would leave registers for fewer
// rows. Here a format has
//
//   kType, Source, Packed   with kLanes of Source
//   to_floats(packed)
template <typename Format>
struct FloatProduct {
  static constexpr Operand kOperand = Operand::kFloats;
  static constexpr int kRowsTogether = 1;
  static constexpr int kParts = 1;
  static constexpr size_t kPartOperandBytes = sizeof(float);
  static constexpr int kMaxGroup = kMaxFloatRows;
  static constexpr int kChains = 2;

  template <int kRows>
  __attribute__((noinline)) static void multiply(GroupArgs args) {
    const auto* weights = reinterpret_cast<const typename Format::Packed*>(args.tile);
    Floats sums[kChains * kRows];  // of even inputs, then of odd ones
    args.begin(sums);
    Floats* even = sums;
    Floats* odd = sums + kRows;
    int64_t k = 0;
    for (; k + 4 <= args.n_blocks; k += 4) {
      args.ahead.fetch(4);
      Four x[kRows];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) x[r] = load_four(args.x.numbers(r) + k);
      add_input<0>(weights[k], x, even);
      add_input<1>(weights[k + 1], x, odd);
      add_input<2>(weights[k + 2], x, even);
      add_input<3>(weights[k + 3], x, odd);
    }
    if (k < args.n_blocks) add_last_input<kRows>(weights[k], args.x, k, even);
    if (k + 1 < args.n_blocks) add_last_input<kRows>(weights[k + 1], args.x, k + 1, odd);
    if (k + 2 < args.n_blocks) add_last_input<kRows>(weights[k + 2], args.x, k + 2, even);
    if (!args.is_last) return args.wait(sums);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) store(args.y + r * args.y_stride, add(even[r], odd[r]));
  }

 private:
  template <int kIndex, int kRows>
  static void add_input(const typename Format::Packed& packed, const Four (&x)[kRows], Floats* sums) {
    const Floats w = Format::to_floats(packed);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sums[r] = fma_by<kIndex>(w, x[r], sums[r]);
  }
  // One of fewer than four: there may be nothing behind it.
  template <int kRows>
  static void add_last_input(const typename Format::Packed& packed, const RowGroup& x, int64_t k,
                             Floats* sums) {
    const Floats w = Format::to_floats(packed);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sums[r] = fma(w, broadcast(x.numbers(r)[k]), sums[r]);
  }
};

template <typename Product, int kRows = Product::kMaxGroup>
inline void multiply_group(int n_rows, const GroupArgs& args) {
  if (n_rows == kRows) return Product::template multiply<kRows>(args);
  if constexpr (kRows > 1) multiply_group<Product, kRows - 1>(n_rows, args);
}

// Bundles of rows that lie together.
template <typename Product>
inline int count_bundles(int n_rows) {
  return (n_rows + Product::kRowsTogether - 1) / Product::kRowsTogether;
}

// Part i of rows in `n_parts` nearly equal ones begins here, with a bundle.
template <typename Product>
inline int part_begin(int n_rows, int n_parts, int i) {
  const int64_t n_bundles = count_bundles<Product>(n_rows);
  const int begin = static_cast<int>(n_bundles * i / n_parts) * Product::kRowsTogether;
  return begin < n_rows ? begin : n_rows;
}

// So many bytes of activations, and of weights beside them, stay in the second cache.
constexpr size_t kCachedRows = 512 * 1024;
constexpr size_t kCachedTiles = 128 * 1024;

// Groups of rows are multiplied with a few tiles at a time, which come from memory once.
// Each of them fetches a part of the tiles after those.
template <typename Format, typename Product>
inline void multiply_rows(const ProductArgs& args, int first_row, int n_rows) {
  constexpr size_t kBlockBytes = sizeof(typename Format::Packed);
  const size_t tile_bytes = args.n_blocks * kBlockBytes;
  const int n_groups = (n_rows + Product::kMaxGroup - 1) / Product::kMaxGroup;
  constexpr size_t kPartBytes = (kBlockBytes + Product::kParts - 1) / Product::kParts;
  const size_t fetched = (kPartBytes + n_groups - 1) / n_groups;  // per part of a block
  int64_t n_cached = kCachedTiles / tile_bytes;
  n_cached = n_cached > n_groups ? n_groups : n_cached < 1 ? 1 : n_cached;
  for (int64_t first = 0; first < args.n_tiles; first += n_cached) {
    const int64_t n_tiles = n_cached < args.n_tiles - first ? n_cached : args.n_tiles - first;
    const std::byte* tiles = args.tiles + first * tile_bytes;
    const std::byte* ahead = tiles + n_tiles * tile_bytes;
    for (int g = 0; g < n_groups; ++g) {
      const int begin = first_row + part_begin<Product>(n_rows, n_groups, g);
      const int end = first_row + part_begin<Product>(n_rows, n_groups, g + 1);
      const std::byte* x = args.x + begin / Product::kRowsTogether * args.x_stride;
      for (int64_t t = 0; t < n_tiles; ++t) {
        multiply_group<Product>(end - begin, {.tile = tiles + t * tile_bytes,
                                              .n_blocks = args.n_blocks,
                                              .x = {x, args.x_stride},
                                              .ahead = Prefetcher(ahead, fetched),
                                              .y = args.y + begin * args.y_stride + (first + t) * kLanes,
                                              .y_stride = args.y_stride});
        ahead += args.n_blocks * Product::kParts * fetched;
      }
    }
  }
}

// Calls multiply_chunk(first_row, n_rows) for chunks of rows that stay in the second cache.
template <typename Product, typename F>
inline void for_each_row_chunk(const ProductArgs& args, F multiply_chunk) {
  const size_t bundle_bytes = args.n_blocks * Product::kParts * Product::kPartOperandBytes;
  const size_t rows_bytes = count_bundles<Product>(args.n_rows) * bundle_bytes;
  const size_t n_wanted = (rows_bytes + kCachedRows - 1) / kCachedRows;
  const int n_groups = (args.n_rows + Product::kMaxGroup - 1) / Product::kMaxGroup;
  const int n_chunks = n_wanted < static_cast<size_t>(n_groups) ? static_cast<int>(n_wanted) : n_groups;
  for (int c = 0; c < n_chunks; ++c) {
    const int begin = part_begin<Product>(args.n_rows, n_chunks, c);
    const int end = part_begin<Product>(args.n_rows, n_chunks, c + 1);
    multiply_chunk(begin, end - begin);
  }
}

template <typename Format, typename Product>
void multiply(const ProductArgs& args) {
  for_each_row_chunk<Product>(
      args, [&](int first_row, int n_rows) { multiply_rows<Format, Product>(args, first_row, n_rows); });
}

template <typename Format>
void pack(const std::byte* rows, size_t row_bytes, int n_rows, int64_t n_blocks, std::byte* tile) {
  auto* packed = reinterpret_cast<typename Format::Packed*>(tile);
  memset(tile, 0, n_blocks * sizeof(*packed));
  for (int lane = 0; lane < n_rows; ++lane) {
    const std::byte* source = rows + lane * row_bytes;
    for (int64_t b = 0; b < n_blocks; ++b, source += sizeof(typename Format::Source)) {
      typename Format::Source block;  // a copy: files need not align tensors
      memcpy(&block, source, sizeof(block));
      Format::pack(block, lane, packed[b]);
    }
  }
}

template <typename Format>
constexpr WeightFormat weight_format(Operand operand, void (*multiply)(const ProductArgs& args)) {
  return {.type = Format::kType,
          .operand = operand,
          .block_size = Format::kBlockSize,
          .block_bytes = sizeof(typename Format::Packed),
          .pack = pack<Format>,
          .multiply = multiply};
}

}  // namespace forerun::kernels::FORERUN_ISA
