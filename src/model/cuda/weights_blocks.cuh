// The weight types with blocks of 32 in the file: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, MXFP4.
//
// Stage: quants, of Q5 the fifth bits, then scales [block][tile][g] of outputs g and g + 8.
#pragma once

#include "model/cuda/weights.cuh"

namespace forerun::cuda {

// One F16 scale per block.
template <typename W>
struct HalfScale : ScaledSums<1, false> {
  static constexpr int kScaleBytes = 2;

  static __device__ __forceinline__ BlockScales scales(const std::byte* stage, int block, int tile,
                                                       int g) {
    const float2 d = floats(as<uint32_t>(stage + W::kScalesAt)[(block * W::kAllTiles + tile) * 8 + g]);
    return {.scale = {{d.x, d.y}, {d.x, d.y}}, .min = {}};
  }
  static __device__ void pack_scales(const uint8_t* from, const Place& to) {
    as<uint16_t>(to.stage + W::kScalesAt)[scale_index<W>(to)] = read_16(from);
  }
};

// An F16 scale and an F16 minimum.
template <typename W>
struct HalfScaleAndMin : ScaledSums<1, true> {
  static constexpr int kScaleBytes = 4;

  static __device__ __forceinline__ BlockScales scales(const std::byte* stage, int block, int tile,
                                                       int g) {
    const uint2 v = as<uint2>(stage + W::kScalesAt)[(block * W::kAllTiles + tile) * 8 + g];
    const float2 of_0 = floats(v.x), of_1 = floats(v.y);
    return {.scale = {{of_0.x, of_1.x}, {of_0.x, of_1.x}}, .min = {of_0.y, of_1.y}};
  }
  static __device__ void pack_scales(const uint8_t* from, const Place& to) {
    as<uint32_t>(to.stage + W::kScalesAt)[scale_index<W>(to)] = read_16(from) | read_16(from + 2) << 16;
  }
};

// A power of two: a byte that is its exponent.
template <typename W>
struct ExponentScale : ScaledSums<1, false> {
  static constexpr int kScaleBytes = 1;

  // Half of 2^(e - 127), since quants are twice their values. The first two are too small for an
  // exponent.
  static __device__ __forceinline__ float power(uint32_t e) {
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  }
  static __device__ __forceinline__ BlockScales scales(const std::byte* stage, int block, int tile,
                                                       int g) {
    const uint32_t v = as<uint16_t>(stage + W::kScalesAt)[(block * W::kAllTiles + tile) * 8 + g];
    const float of_0 = power(v & 255), of_1 = power(v >> 8);
    return {.scale = {{of_0, of_1}, {of_0, of_1}}, .min = {}};
  }
  static __device__ void pack_scales(const uint8_t* from, const Place& to) {
    as<uint8_t>(to.stage + W::kScalesAt)[scale_index<W>(to)] = *from;
  }
};

// Quants: [block][tile][lane] {8 bytes of output g, 8 bytes of output g + 8}.
struct Q8_0 : StageShape<2, 64>, HalfScale<Q8_0> {
  static constexpr int kScalesAt = kOutputs * kDepth;
  static constexpr int kStageBytes = kScalesAt + kOutputs * kBlocks * kScaleBytes;
  static constexpr int kFileBlock = 32, kFileBytes = 34;  // scale, 32 bytes

  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const uint4 q = as<uint4>(stage)[(block * kAllTiles + first_tile + m) * 32 + lane];
    unpack_bytes(q.x, a[0][0], a[0][2]);
    unpack_bytes(q.y, a[1][0], a[1][2]);
    unpack_bytes(q.z, a[0][1], a[0][3]);
    unpack_bytes(q.w, a[1][1], a[1][3]);
  }
  static __device__ void pack(const uint8_t* from, int /*part*/, const Place& to) {
    uint8_t* bytes =
        as<uint8_t>(to.stage) + ((to.block * kAllTiles + to.tile) * 32 + to.lane) * 16 + to.row * 8;
    for (int i = 0; i < 8; ++i) bytes[i] = from[2 + input_of(to.lane, i / 2, i % 2)];
    if (to.lane % 4 == 0) pack_scales(from, to);
  }
};

// In files, byte i of the nibbles holds the weights i and i + 16.
__device__ __forceinline__ uint32_t nibble_of(const uint8_t* nibbles, int i) {
  return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
}

// 4 bits. kBias is taken from quants. In the file: scales, 16 bytes.
template <template <typename> typename ScalesOf, int kBias>
struct Nibbles : StageShape<2, 128>, ScalesOf<Nibbles<ScalesOf, kBias>> {
  using Shape = StageShape<2, 128>;
  using Scale = ScalesOf<Nibbles>;
  static constexpr int kScalesAt = Shape::kOutputs * Shape::kDepth / 2;
  static constexpr int kStageBytes = kScalesAt + Shape::kOutputs * Shape::kBlocks * Scale::kScaleBytes;
  static constexpr int kFileBlock = 32, kFileBytes = Scale::kScaleBytes + 16;

  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const uint2 words = nibble_words<Nibbles>(stage, block, first_tile + m, lane);
    unpack_nibbles<kBias>(words.x, 0, a);
    unpack_nibbles<kBias>(words.y, 1, a);
  }
  static __device__ void pack(const uint8_t* from, int /*part*/, const Place& to) {
    pack_nibbles<Nibbles>(to, [&](int i) { return nibble_of(from + Scale::kScaleBytes, i); });
    if (to.lane % 4 == 0) Scale::pack_scales(from, to);
  }
};
using Q4_0 = Nibbles<HalfScale, 8>;
using Q4_1 = Nibbles<HalfScaleAndMin, 0>;

// 5 bits. In the file: scales, 4 bytes of fifth bits, 16 bytes.
template <template <typename> typename ScalesOf, int kBias>
struct FiveBits : StageShape<2, 128>, ScalesOf<FiveBits<ScalesOf, kBias>> {
  using Shape = StageShape<2, 128>;
  using Scale = ScalesOf<FiveBits>;
  static constexpr int kScalesAt = Shape::kOutputs * Shape::kDepth / 8 * 5;
  static constexpr int kStageBytes = kScalesAt + Shape::kOutputs * Shape::kBlocks * Scale::kScaleBytes;
  static constexpr int kFileBlock = 32, kFileBytes = Scale::kScaleBytes + 20;

  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const uint2 words = nibble_words<FiveBits>(stage, block, first_tile + m, lane);
    const uint32_t fifths = fifth_bits<FiveBits>(stage, block, first_tile / 2 + m / 2, lane);
    unpack_more<kBias, 1>(words.x, fifths, 8 * (m % 2), 2, 0, a);
    unpack_more<kBias, 1>(words.y, fifths, 8 * (m % 2) + 1, 2, 1, a);
  }
  static __device__ void pack(const uint8_t* from, int /*part*/, const Place& to) {
    const auto quant = [&](int i) {
      const uint8_t* fifths = from + Scale::kScaleBytes;
      return nibble_of(fifths + 4, i) | (fifths[i / 8] >> i % 8 & 1u) << 4;
    };
    pack_nibbles<FiveBits>(to, quant);
    pack_fifth_bits<FiveBits>(to, quant);
    if (to.lane % 4 == 0) Scale::pack_scales(from, to);
  }
};
using Q5_0 = FiveBits<HalfScale, 16>;
using Q5_1 = FiveBits<HalfScaleAndMin, 0>;

// Nibbles that are a sign and the number of one of eight values, here twice as large as they are, so
// that they are integers. As halves all these have zeros in their lower byte: the upper ones are looked
// up.
struct MXFP4 : Nibbles<ExponentScale, 0> {
  static __device__ __forceinline__ void unpack_values(uint32_t word, int row, BlockOperand& a) {
    constexpr uint32_t k0123 = 0x42403c00u, k46812 = 0x4a484644u;
    const uint32_t numbers = word & 0x77777777u;
    const uint32_t firsts = ptx::choose_bytes(k0123, k46812, numbers);
    const uint32_t seconds = ptx::choose_bytes(k0123, k46812, numbers >> 16);
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const uint32_t values = ptx::choose_bytes(firsts, seconds, 0x4808 + 0x1010 * pair);
      a[pair / 2][pair % 2 * 2 + row] = ptx::and_or(word << (12 - 4 * pair), 0x80008000u, values);
    }
  }
  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const uint2 words = nibble_words<MXFP4>(stage, block, first_tile + m, lane);
    unpack_values(words.x, 0, a);
    unpack_values(words.y, 1, a);
  }
};

}  // namespace forerun::cuda
