// AMX tiles: registers of 16 lines of 64 bytes, and the product of two of them.
//
// In assembly, because GCC 12's own functions do not say which memory they read, so that
// stores before them may be dropped or come after them. The compiler does not know of
// tiles at all: what uses them lives inside a TileScope.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/products_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kTileLines = 16;

// The dot products of 16 rows and kLanes outputs, a line per row.
struct alignas(64) TileDots {
  int32_t bits[kTileLines][kLanes];
};

// The registers. There are two of each, so that a product need not wait until the results
// of the last one are stored.
constexpr int kDotsTile = 0, kRowsTile = 2, kWeightsTile = 4;

// As the processor wants it.
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_line;
  uint8_t reserved[14];
  uint16_t line_bytes[16];
  uint8_t lines[16];
};

// Configures the registers for products of `n_inputs` inputs (a multiple of 4, up to 64). In the
// end they are configured as they were before: others that share the thread, ggml among them,
// may rely on that. If they were not in use they are given back, which makes switching threads
// cheap again.
class TileScope {
 public:
  explicit TileScope(int n_inputs) {
    asm volatile("sttilecfg %0" : "=m"(before_) : : "memory");
    TileConfig config = {};
    config.palette = 1;
    for (int i = 0; i < 2; ++i) {
      config.lines[kDotsTile + i] = kTileLines;
      config.line_bytes[kDotsTile + i] = kVectorBytes;
      config.lines[kRowsTile + i] = kTileLines;
      config.line_bytes[kRowsTile + i] = static_cast<uint16_t>(n_inputs);
      config.lines[kWeightsTile + i] = static_cast<uint8_t>(n_inputs / 4);
      config.line_bytes[kWeightsTile + i] = kVectorBytes;
    }
    asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  }
  ~TileScope() {
    // The configuration of registers that are not in use gives them back.
    asm volatile("ldtilecfg %0" : : "m"(before_) : "memory");
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  TileConfig before_;
};

// A line that sums begin with.
alignas(64) constexpr int32_t kFirstSums[kLanes] = {
    kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits,
    kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits,
    kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits};

// Multiplies 16 rows of signed activations, kRowBytes apart, with signed weights, whose vector
// g has inputs 4 * g to 4 * g + 3 of all outputs. Sums begin with kSumBaseBits.
template <int kTile, size_t kRowBytes>
inline void begin_dots(const int8_t* rows, const Bytes* weights) {
  asm volatile(
      "tileloadd (%[first],%[zero],1), %%tmm%c[dots_tile]\n\t"
      "tileloadd (%[rows],%[row_bytes],1), %%tmm%c[rows_tile]\n\t"
      "tileloadd (%[weights],%[line_bytes],1), %%tmm%c[weights_tile]\n\t"
      "tdpbssd %%tmm%c[weights_tile], %%tmm%c[rows_tile], %%tmm%c[dots_tile]"
      :
      : [dots_tile] "i"(kDotsTile + kTile), [rows_tile] "i"(kRowsTile + kTile),
        [weights_tile] "i"(kWeightsTile + kTile), [first] "r"(kFirstSums), [zero] "r"(size_t{0}),
        [rows] "r"(rows), [row_bytes] "r"(kRowBytes), [weights] "r"(weights),
        [line_bytes] "r"(size_t{kVectorBytes})
      : "memory");
}
template <int kTile>
inline void store_dots(TileDots& dots) {
  asm volatile(
      "tilestored %%tmm%c[dots_tile], (%[to],%[line_bytes],1)"
      :
      : [dots_tile] "i"(kDotsTile + kTile), [to] "r"(&dots), [line_bytes] "r"(size_t{kVectorBytes})
      : "memory");
}
inline Floats load_dots(const int32_t* bits) {
  return {_mm512_castsi512_ps(_mm512_load_si512(bits))};
}

template <int kNumber>
inline Bytes subtract(Bytes a) {
  if constexpr (kNumber != 0) a.v = _mm512_sub_epi8(a.v, _mm512_set1_epi8(static_cast<char>(kNumber)));
  return a;
}

}  // namespace forerun::kernels::FORERUN_ISA
