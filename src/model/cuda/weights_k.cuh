// The weight types with blocks of 256 in the file: Q4_K, Q5_K, Q6_K. Their scales are integers that have
// a scale themselves. A stage is not as deep as 256, so it repeats that one.
#pragma once

#include "model/cuda/weights.cuh"

namespace forerun::cuda {

// Of something that exists per output of a stage: [tile][g] for outputs g and g + 8.
__device__ __forceinline__ int output_index(const Place& place) {
  return (place.tile * 8 + place.lane / 4) * 2 + place.row;
}

// A weight of Q4_K and Q5_K is d scale q - dmin min, with six bits of scale and of min per 32 weights,
// and F16 d and dmin per 256. Stage, after the quants: [block][tile][g] bytes {scale, min of output g,
// scale, min of output g + 8}, then [tile][g] {d, dmin of output g, d, dmin of output g + 8}.
template <typename W>
struct SixBitScales : ScaledSums<1, true> {
  static __device__ __forceinline__ BlockScales scales(const std::byte* stage, int block, int tile,
                                                       int g) {
    const uint32_t v = as<uint32_t>(stage + W::kScalesAt)[(block * W::kAllTiles + tile) * 8 + g];
    const uint2 d = as<uint2>(stage + W::kSupersAt)[tile * 8 + g];
    const float2 scale = floats(from_low<0>(ptx::and_or(v, 0x00ff00ffu, 0x64006400u)));
    const float2 min = floats(from_low<0>(ptx::and_or(v >> 8, 0x00ff00ffu, 0x64006400u)));
    const float2 d_0 = floats(d.x), d_1 = floats(d.y);
    const float scale_0 = __fmul_rn(d_0.x, scale.x), scale_1 = __fmul_rn(d_1.x, scale.y);
    return {.scale = {{scale_0, scale_1}, {scale_0, scale_1}},
            .min = {-__fmul_rn(d_0.y, min.x), -__fmul_rn(d_1.y, min.y)}};
  }
  // `from`: d, dmin, 12 bytes of scales and mins. The first four of each are the lower six bits of a
  // byte; of the others the upper two bits are where these left room.
  static __device__ void pack_scales(const uint8_t* from, int part, const Place& to) {
    const uint8_t* s = from + 4;
    const uint32_t scale = part < 4 ? s[part] & 63 : (s[part + 4] & 15) | s[part - 4] >> 6 << 4;
    const uint32_t min = part < 4 ? s[part + 4] & 63 : s[part + 4] >> 4 | s[part] >> 6 << 4;
    as<uint16_t>(to.stage + W::kScalesAt)[scale_index<W>(to)] = static_cast<uint16_t>(scale | min << 8);
    as<uint32_t>(to.stage + W::kSupersAt)[output_index(to)] = read_16(from) | read_16(from + 2) << 16;
  }
};

// In the file: d, dmin, scales and mins, 128 bytes of nibbles; those of two parts of 32 share bytes.
__device__ __forceinline__ uint32_t part_nibble(const uint8_t* nibbles, int part, int i) {
  return nibbles[part / 2 * 32 + i] >> part % 2 * 4 & 15;
}

struct Q4_K : StageShape<2, 128>, SixBitScales<Q4_K> {
  static constexpr int kScalesAt = kOutputs * kDepth / 2, kSupersAt = kScalesAt + kOutputs * kBlocks * 2;
  static constexpr int kStageBytes = kSupersAt + kOutputs * 4;
  static constexpr int kFileBlock = 256, kFileBytes = 144;

  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const uint2 words = nibble_words<Q4_K>(stage, block, first_tile + m, lane);
    unpack_nibbles<0>(words.x, 0, a);
    unpack_nibbles<0>(words.y, 1, a);
  }
  static __device__ void pack(const uint8_t* from, int part, const Place& to) {
    pack_nibbles<Q4_K>(to, [&](int i) { return part_nibble(from + 16, part, i); });
    if (to.lane % 4 == 0) pack_scales(from, part, to);
  }
};

// In the file there are 32 bytes of fifth bits before the nibbles: bit `part` of byte i.
struct Q5_K : StageShape<2, 128>, SixBitScales<Q5_K> {
  static constexpr int kScalesAt = kOutputs * kDepth / 8 * 5,
                       kSupersAt = kScalesAt + kOutputs * kBlocks * 2;
  static constexpr int kStageBytes = kSupersAt + kOutputs * 4;
  static constexpr int kFileBlock = 256, kFileBytes = 176;

  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const uint2 words = nibble_words<Q5_K>(stage, block, first_tile + m, lane);
    const uint32_t fifths = fifth_bits<Q5_K>(stage, block, first_tile / 2 + m / 2, lane);
    unpack_more<0, 1>(words.x, fifths, 8 * (m % 2), 2, 0, a);
    unpack_more<0, 1>(words.y, fifths, 8 * (m % 2) + 1, 2, 1, a);
  }
  static __device__ void pack(const uint8_t* from, int part, const Place& to) {
    const auto quant = [&](int i) {
      return part_nibble(from + 48, part, i) | (from[16 + i] >> part & 1u) << 4;
    };
    pack_nibbles<Q5_K>(to, quant);
    pack_fifth_bits<Q5_K>(to, quant);
    if (to.lane % 4 == 0) pack_scales(from, part, to);
  }
};

// A weight is d scale (q - 32), with a signed byte of scale per 16 weights and F16 d per 256. Stage:
// nibbles; [block][tile][lane] a word of the two bits above them; [block][tile][g] two scales of output
// g, two of output g + 8; [tile][g] d of outputs g and g + 8.
struct Q6_K : StageShape<2, 64>, ScaledSums<2, false> {
  static constexpr int kHighAt = kOutputs * kDepth / 2, kScalesAt = kHighAt + kOutputs * kDepth / 4;
  static constexpr int kSupersAt = kScalesAt + kOutputs * kBlocks * 2,
                       kStageBytes = kSupersAt + kOutputs * 2;
  static constexpr int kFileBlock = 256, kFileBytes = 210;

  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
    const int tile = first_tile + m;
    const uint2 words = nibble_words<Q6_K>(stage, block, tile, lane);
    const uint32_t high = as<uint32_t>(stage + kHighAt)[(block * kAllTiles + tile) * 32 + lane];
    unpack_more<32, 2>(words.x, high, 0, 8, 0, a);
    unpack_more<32, 2>(words.y, high, 2, 8, 1, a);
  }
  static __device__ __forceinline__ BlockScales scales(const std::byte* stage, int block, int tile,
                                                       int g) {
    uint32_t of_0, of_1;
    unpack_bytes(as<uint32_t>(stage + kScalesAt)[(block * kAllTiles + tile) * 8 + g], of_0, of_1);
    const float2 d = floats(as<uint32_t>(stage + kSupersAt)[tile * 8 + g]);
    const float2 scale_0 = floats(of_0), scale_1 = floats(of_1);
    return {.scale = {{__fmul_rn(d.x, scale_0.x), __fmul_rn(d.y, scale_1.x)},
                      {__fmul_rn(d.x, scale_0.y), __fmul_rn(d.y, scale_1.y)}},
            .min = {}};
  }

  // In the file: 128 bytes of nibbles, 64 bytes of upper bits, 16 scales, d. Parts 0 to 3 are in the
  // first halves of nibbles and upper bits; of two parts that share nibbles the second is two further
  // on.
  static __device__ uint32_t quant(const uint8_t* from, int part, int i) {
    const uint8_t* nibbles = from + part / 4 * 64 + part % 2 * 32;
    const uint8_t* upper = from + 128 + part / 4 * 32;
    return (nibbles[i] >> part % 4 / 2 * 4 & 15u) | (upper[i] >> part % 4 * 2 & 3u) << 4;
  }
  static __device__ void pack(const uint8_t* from, int part, const Place& to) {
    const int at = to.block * kAllTiles + to.tile;
    pack_nibbles<Q6_K>(to, [&](int i) { return quant(from, part, i); });
    uint32_t& high = as<uint32_t>(to.stage + kHighAt)[at * 32 + to.lane];
    for (int i = 0; i < 8; ++i) {
      const int pair = i / 2, bit = pair / 2 * 8 + pair % 2 * 4 + to.row * 2 + i % 2 * 16;
      high |= quant(from, part, input_of(to.lane, pair, i % 2)) >> 4 << bit;
    }
    if (to.lane % 4 == 0) {
      const uint8_t* scales = from + 192 + part * 2;
      as<uint16_t>(to.stage + kScalesAt)[scale_index<Q6_K>(to)] = static_cast<uint16_t>(read_16(scales));
      as<uint16_t>(to.stage + kSupersAt)[output_index(to)] = static_cast<uint16_t>(read_16(from + 208));
    }
  }
};

}  // namespace forerun::cuda
