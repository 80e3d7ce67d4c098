// Products of many rows: weights are unpacked once for all of them, a chunk of inputs at a time,
// and lie in the first cache while groups of rows are multiplied with them. The sums of a
// group wait beside them for the next chunk, so that they are the same chains of additions.
#pragma once

#include "model/kernels/formats_float_impl.h"
#include "model/kernels/products_impl.h"

namespace forerun::kernels::FORERUN_ISA {

// A format of steps with nothing left to compute, which weight types share.
template <int kOffsetOfWeights, int kLargest, int kGroup, bool kMinimum>
struct UnpackedSteps {
  static constexpr int kBlockSize = kActivationBlock, kPartSteps = 1;
  static constexpr int kOffset = kOffsetOfWeights, kMaxWeight = kLargest, kScaleGroup = kGroup;
  static constexpr bool kHasMinimum = kMinimum;
  static constexpr int kScaleGroups = kActivationBlock / kScaleGroup;

  struct Packed {
    Bytes quants[8];
    StepScale scales[kScaleGroups];
    float minimums[kLanes];
  };

  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    for (int g = 0; g < 4; ++g) w[g] = packed.quants[4 * kHalf + g];
  }
  template <int kStep, int kHalf>
  static const StepScale& step_scale(const Packed& packed, int /*part*/) {
    return packed.scales[kScaleGroups == 2 ? kHalf : 0];
  }
  template <int kStep, int kHalf>
  static Floats scale(const Packed& packed, int part) {
    return step_scale<kStep, kHalf>(packed, part).scale;
  }
  template <int kStep>
  static Floats minimum(const Packed& packed, int /*part*/) {
    return load(packed.minimums);
  }
};

// Of sets that multiply signed weights (tiles_amx.h).
template <int kNumber>
Bytes subtract(Bytes a);

// What a format is unpacked to: Steps, and part after part of a block, make() which returns
// where the next one goes. If kSigned, the offset is taken away from weights.
template <typename Format, bool kSigned = false>
struct Unpacked {
  using Steps = UnpackedSteps<kSigned ? 0 : Format::kOffset, kSigned ? 255 : Format::kMaxWeight,
                              Format::kScaleGroup, Format::kHasMinimum>;
  using Packed = typename Steps::Packed;

  template <int kStep = 0>
  static Packed* make(const typename Format::Packed& packed, int part, Packed* to) {
    Bytes w[4];
    Format::template unpack<kStep, 0>(packed, part, w);
    store_half<0>(w, *to);
    Format::template unpack<kStep, 1>(packed, part, w);
    store_half<1>(w, *to);
    to->scales[0] = StepScale(Format::template scale<kStep, 0>(packed, part));
    if constexpr (Steps::kScaleGroups == 2) {
      to->scales[1] = StepScale(Format::template scale<kStep, 1>(packed, part));
    }
    if constexpr (Steps::kHasMinimum) {
      store(to->minimums, Format::template minimum<kStep>(packed, part));
    }
    if constexpr (kStep + 1 < Format::kPartSteps) return make<kStep + 1>(packed, part, to + 1);
    return to + 1;
  }

 private:
  // (By reference: GCC would copy vectors that are returned through memory.)
  template <int kHalf>
  static void store_half(const Bytes (&w)[4], Packed& to) {
    for (int g = 0; g < 4; ++g) {
      if constexpr (kSigned) {
        to.quants[4 * kHalf + g] = subtract<Format::kOffset>(w[g]);
      } else {
        to.quants[4 * kHalf + g] = w[g];
      }
    }
  }
};

template <typename Format>
concept HasNumbers = requires(const typename Format::Packed& packed) {
  Format::to_floats(packed);
};

// Weights that are numbers become floats.
template <HasNumbers Format>
struct Unpacked<Format, false> {
  using Steps = F32;
  using Packed = F32::Packed;

  static Packed* make(const typename Format::Packed& packed, int /*part*/, Packed* to) {
    store(to->numbers, Format::to_floats(packed));
    return to + 1;
  }
};

// With fewer rows it takes as long to store what was unpacked as to unpack it for each group.
template <typename Format, typename Product>
constexpr int min_unpacked_rows() {
  if constexpr (HasNumbers<Format>) {
    return Product::kMaxGroup + 1;
  } else {
    return kUnpackedGroups[Format::kScaleGroup < kActivationBlock ? 1 : 0] * Product::kMaxGroup;
  }
}
// So many are multiplied with what was unpacked for them,
constexpr int kUnpackedRows = 64;
// and so much of a tile is unpacked at a time.
constexpr size_t kUnpackedBytes = 24 * 1024;

// One tile times up to kUnpackedRows rows.
template <typename Format, template <typename> typename ProductOf>
class UnpackedTile {
 public:
  using Product = ProductOf<typename Unpacked<Format>::Steps>;

  // Of `fetched` bytes from `ahead` on, a share is fetched with each part of a block.
  UnpackedTile(const ProductArgs& args, const std::byte* ahead, size_t fetched)
      : args_(args),
        n_groups_((args.n_rows + Product::kMaxGroup - 1) / Product::kMaxGroup),
        n_parts_(args.n_blocks * kParts),
        ahead_(ahead),
        fetched_((fetched + n_groups_ * n_parts_ - 1) / (n_groups_ * n_parts_)) {}

  __attribute__((noinline)) void multiply() {
    for (int64_t first = 0; first < n_parts_; first += kChunkParts) {
      const int64_t end = first + kChunkParts < n_parts_ ? first + kChunkParts : n_parts_;
      unpack(first, end);
      for (int g = 0; g < n_groups_; ++g) multiply_group_with(first, end, g);
    }
  }

 private:
  using Block = typename Unpacked<Format>::Packed;
  static constexpr int kParts = ProductOf<Format>::kParts;
  static constexpr int kPartBlocks = Format::kBlockSize / kParts / Unpacked<Format>::Steps::kBlockSize;
  // Even, since chains of even and odd inputs go on with the next chunk.
  static constexpr int kChunkParts = kUnpackedBytes / (kPartBlocks * sizeof(Block)) / 4 * 4;

  void unpack(int64_t first, int64_t end) {
    const auto* blocks = reinterpret_cast<const typename Format::Packed*>(args_.tiles);
    Block* to = weights_;
    for (int64_t p = first; p < end; ++p) {
      to = Unpacked<Format>::make(blocks[p / kParts], static_cast<int>(p % kParts), to);
    }
  }

  void multiply_group_with(int64_t first, int64_t end, int g) {
    const int begin = part_begin<Product>(args_.n_rows, n_groups_, g);
    const int n_rows = part_begin<Product>(args_.n_rows, n_groups_, g + 1) - begin;
    const int64_t n_blocks = (end - first) * kPartBlocks;
    const std::byte* x = args_.x + begin / Product::kRowsTogether * args_.x_stride +
                         first * kPartBlocks * Product::kPartOperandBytes;
    multiply_group<Product>(n_rows, {.tile = reinterpret_cast<const std::byte*>(weights_),
                                     .n_blocks = n_blocks,
                                     .x = {x, args_.x_stride},
                                     .ahead = Prefetcher(ahead_, fetched_),
                                     .y = args_.y + begin * args_.y_stride,
                                     .y_stride = args_.y_stride,
                                     .waiting = waiting_ + begin * Product::kChains * kLanes,
                                     .is_first = first == 0,
                                     .is_last = end == n_parts_});
    ahead_ += n_blocks * fetched_;
  }

  const ProductArgs& args_;
  int n_groups_;
  int64_t n_parts_;
  const std::byte* ahead_;
  size_t fetched_;
  Block weights_[kChunkParts * kPartBlocks];
  float waiting_[kUnpackedRows * Product::kChains * kLanes];
};

template <typename Format, template <typename> typename ProductOf>
void multiply_unpacked_rows(const ProductArgs& args, int first_row, int n_rows) {
  const size_t tile_bytes = args.n_blocks * sizeof(typename Format::Packed);
  const int n_row_blocks = (n_rows + kUnpackedRows - 1) / kUnpackedRows;
  const size_t fetched = (tile_bytes + n_row_blocks - 1) / n_row_blocks;
  ProductArgs part = args;
  part.n_tiles = 1;
  for (int64_t t = 0; t < args.n_tiles; ++t) {
    part.tiles = args.tiles + t * tile_bytes;
    for (int i = 0; i < n_row_blocks; ++i) {
      using Product = typename UnpackedTile<Format, ProductOf>::Product;
      const int begin = first_row + part_begin<Product>(n_rows, n_row_blocks, i);
      const int end = first_row + part_begin<Product>(n_rows, n_row_blocks, i + 1);
      part.x = args.x + begin / Product::kRowsTogether * args.x_stride;
      part.n_rows = end - begin;
      part.y = args.y + begin * args.y_stride + t * kLanes;
      UnpackedTile<Format, ProductOf>(part, part.tiles + tile_bytes + i * fetched, fetched).multiply();
    }
  }
}

template <typename Format, template <typename> typename ProductOf>
void multiply_few_or_many(const ProductArgs& args) {
  using Product = ProductOf<Format>;
  for_each_row_chunk<Product>(args, [&](int first_row, int n_rows) {
    if (n_rows < min_unpacked_rows<Format, Product>()) {
      multiply_rows<Format, Product>(args, first_row, n_rows);
    } else {
      multiply_unpacked_rows<Format, ProductOf>(args, first_row, n_rows);
    }
  });
}

}  // namespace forerun::kernels::FORERUN_ISA
