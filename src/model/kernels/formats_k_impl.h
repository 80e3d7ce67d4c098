// The weight types with blocks of 256 that are multiplied with whole steps of 32 (or
// halves of them): Q4_K, Q5_K, Q6_K.
//
// As in the file, nibbles are paired 32 inputs apart (Q4_K, Q5_K) or 64 (Q6_K), so that
// packing quants is copying words. Scales of 6 bits become bytes.
#pragma once

#include "model/kernels/formats_32_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kSuperBlock = 256;
constexpr int kSuperSteps = kSuperBlock / kActivationBlock;

// Scales and minimums of 8 steps, 6 bits each, as Q4_K and Q5_K have them in 12 bytes:
// those of steps 0 to 3 are the low bits of bytes 0 to 3 (scales) and 4 to 7 (minimums);
// bytes 8 to 11 have the low 4 bits of steps 4 to 7, whose upper 2 bits are the upper
// ones of bytes 0 to 7.
struct StepScales {
  uint8_t scale, minimum;
};
inline StepScales step_scales(const uint8_t (&packed)[12], int step) {
  if (step < 4) {
    return {static_cast<uint8_t>(packed[step] & 63), static_cast<uint8_t>(packed[step + 4] & 63)};
  }
  const uint8_t low = packed[step + 4];
  return {static_cast<uint8_t>((low & 15) | (packed[step - 4] >> 6 << 4)),
          static_cast<uint8_t>((low >> 4) | (packed[step] >> 6 << 4))};
}

// What Q4_K and Q5_K share beside the quants. Scales and minimums are products of two
// factors with few enough bits to be exact. The file has what is to be subtracted; d_minimum
// is of the other sign, so that it is added.
struct PackedSuperScales {
  uint16_t d[kLanes], d_minimum[kLanes];
  uint8_t scales[kSuperSteps][kLanes];
  uint8_t minimums[kSuperSteps][kLanes];

  void pack(uint16_t source_d, uint16_t source_d_minimum, const uint8_t (&source_scales)[12], int lane) {
    d[lane] = source_d;
    d_minimum[lane] = source_d_minimum ^ 0x8000;
    for (int step = 0; step < kSuperSteps; ++step) {
      const StepScales step_scale = step_scales(source_scales, step);
      scales[step][lane] = step_scale.scale;
      minimums[step][lane] = step_scale.minimum;
    }
  }
  Floats scale(int step) const { return mul(load_half(d), load_uint8(scales[step])); }
  Floats minimum(int step) const { return mul(load_half(d_minimum), load_uint8(minimums[step])); }
};

// What Q4_K and Q5_K have in common: parts of 64, a step in each nibble.
struct SuperBlocksWithMinimum {
  static constexpr int kBlockSize = kSuperBlock, kPartSteps = 2, kScaleGroup = 32;
  static constexpr bool kHasMinimum = true;

  template <int kStep, int kHalf, typename Packed>
  static Floats scale(const Packed& packed, int part) {
    return packed.scales.scale(2 * part + kStep);
  }
  template <int kStep, typename Packed>
  static Floats minimum(const Packed& packed, int part) {
    return packed.scales.minimum(2 * part + kStep);
  }
};

struct Q4_K : SuperBlocksWithMinimum {
  static constexpr ggml_type kType = GGML_TYPE_Q4_K;
  static constexpr int kOffset = 0, kMaxWeight = 15;

  struct Source {
    uint16_t d, d_minimum;
    uint8_t scales[12];
    uint8_t quants[4][32];
  };
  struct Packed {
    std::byte quants[4][8 * kVectorBytes];
    PackedSuperScales scales;
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.scales.pack(source.d, source.d_minimum, source.scales, lane);
    for (int part = 0; part < 4; ++part) copy_words(source.quants[part], 8, lane, packed.quants[part]);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int part, Bytes (&w)[4]) {
    for (int g = 0; g < 4; ++g) w[g] = nibbles<kStep>(packed.quants[part], 4 * kHalf + g);
  }
};

struct Q5_K : SuperBlocksWithMinimum {
  static constexpr ggml_type kType = GGML_TYPE_Q5_K;
  static constexpr int kOffset = -kFifthOffset, kMaxWeight = 31;

  struct Source {
    uint16_t d, d_minimum;
    uint8_t scales[12];
    uint8_t fifth[32];  // bit `step` of byte k: of input k of the step
    uint8_t quants[4][32];
  };
  struct Part {
    std::byte quants[8 * kVectorBytes];
    std::byte fifth[2][kVectorBytes];  // of a step: as in Q5_0
  };
  struct Packed {
    Part parts[4];
    PackedSuperScales scales;
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.scales.pack(source.d, source.d_minimum, source.scales, lane);
    for (int part = 0; part < 4; ++part) {
      copy_words(source.quants[part], 8, lane, packed.parts[part].quants);
      for (int i = 0; i < 2; ++i) {
        uint8_t bits_of_step[4] = {};
        for (int k = 0; k < 32; ++k) {
          const int bit = (source.fifth[k] >> (2 * part + i)) & 1;
          bits_of_step[k / 8] = static_cast<uint8_t>(bits_of_step[k / 8] | bit << (k % 8));
        }
        pack_fifth_bits(bits_of_step, lane, packed.parts[part].fifth[i]);
      }
    }
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int part, Bytes (&w)[4]) {
    const Part& p = packed.parts[part];
    unpack_five_bits<kStep, kHalf>(p.quants + 4 * kHalf * kVectorBytes, load_bytes(p.fifth[kStep]), w);
  }
};

// Two parts of 128. Step i of a part has its low 4 bits in nibbles i / 2 of the low vectors
// 8 * (i % 2) and following, its upper 2 bits in bits 2 * i of the high ones. Signed weights
// (kSignedWeights) are 4 times too large, and the scale as much smaller, which is exact.
// Inverting a quant's upper bit takes 32 away from a signed one.
struct Q6_K {
  static constexpr ggml_type kType = GGML_TYPE_Q6_K;
  static constexpr int kBlockSize = kSuperBlock, kPartSteps = 4, kScaleGroup = 16;
  static constexpr int kOffset = kSignedWeights ? 0 : 32, kMaxWeight = kSignedWeights ? 255 : 63;
  static constexpr bool kHasMinimum = false;

  struct Source {
    uint8_t low[2][64];
    uint8_t high[2][32];
    int8_t scales[2][8];
    uint16_t d;
  };
  struct Part {
    std::byte low[16 * kVectorBytes];
    std::byte high[8 * kVectorBytes];
    int8_t scales[8][kLanes];
  };
  struct Packed {
    Part parts[2];
    uint16_t d[kLanes];
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.d[lane] = source.d;
    for (int part = 0; part < 2; ++part) {
      Part& p = packed.parts[part];
      copy_words(source.low[part], 16, lane, p.low);
      uint8_t high[32];
      for (int i = 0; i < 32; ++i) high[i] = source.high[part][i] ^ (kSignedWeights ? 0xAA : 0);
      copy_words(high, 8, lane, p.high);
      for (int i = 0; i < 8; ++i) p.scales[i][lane] = source.scales[part][i];
    }
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int part, Bytes (&w)[4]) {
    const Part& p = packed.parts[part];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      const int vector = 4 * kHalf + g;
      w[g] = six_bits<kStep>(load_bytes(p.low + (8 * (kStep % 2) + vector) * kVectorBytes),
                             load_bytes(p.high + vector * kVectorBytes));
    }
  }
  template <int kStep, int kHalf>
  static Floats scale(const Packed& packed, int part) {
    const Floats d = load_half(packed.d);
    return mul(kSignedWeights ? mul(d, broadcast(0x1p-2f)) : d,
               load_int8(packed.parts[part].scales[2 * kStep + kHalf]));
  }
};

}  // namespace forerun::kernels::FORERUN_ISA
