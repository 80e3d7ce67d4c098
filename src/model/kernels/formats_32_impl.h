// The weight types with blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, MXFP4.
//
// Packed 4-bit quants have inputs 0 to 15 of every output, in the order of byte_place(), in
// their low nibbles and those 16 further on in the high ones, as the file pairs them, so
// that packing them is copying words.
#pragma once

#include "model/kernels/products_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kNibbleVectors = 4;

// Puts words of `source`, 4 inputs each, where byte_place() has those of `lane`.
inline void copy_words(const void* source, int n_words, int lane, std::byte* vectors) {
  for (int i = 0; i < n_words; ++i) {
    memcpy(vectors + byte_place(4 * i, lane), static_cast<const std::byte*>(source) + 4 * i, 4);
  }
}

template <int kNibble>
inline Bytes nibbles(const std::byte* vectors, int g) {
  return bits<4 * kNibble, 0x0F>(load_bytes(vectors + g * kVectorBytes));
}

// What these types have in common: a block is one step, with one scale, and perhaps one
// minimum, of half precision.
struct BlocksOf32 {
  static constexpr int kBlockSize = 32, kPartSteps = 1, kScaleGroup = 32;

  template <int kStep, int kHalf, typename Packed>
  static Floats scale(const Packed& packed, int /*part*/) {
    return load_half(packed.d);
  }
  template <int kStep, typename Packed>
  static Floats minimum(const Packed& packed, int /*part*/) {
    return load_half(packed.m);
  }
};

// Signed weights (kSignedWeights) are 16 times too large, and the scale as much smaller,
// which is exact. Inverting a nibble's upper bit takes 8 away from a signed one.
struct Q4_0 : BlocksOf32 {
  static constexpr ggml_type kType = GGML_TYPE_Q4_0;
  static constexpr int kOffset = kSignedWeights ? 0 : 8, kMaxWeight = kSignedWeights ? 255 : 15;
  static constexpr bool kHasMinimum = false;

  struct Source {
    uint16_t d;
    uint8_t quants[16];
  };
  struct Packed {
    std::byte quants[kNibbleVectors * kVectorBytes];
    uint16_t d[kLanes];
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.d[lane] = source.d;
    uint8_t quants[16];
    for (int i = 0; i < 16; ++i) quants[i] = source.quants[i] ^ (kSignedWeights ? 0x88 : 0);
    copy_words(quants, kNibbleVectors, lane, packed.quants);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    for (int g = 0; g < 4; ++g) {
      if constexpr (kSignedWeights) {
        w[g] = bits<4 * kHalf - 4, 0xF0>(load_bytes(packed.quants + g * kVectorBytes));
      } else {
        w[g] = nibbles<kHalf>(packed.quants, g);
      }
    }
  }
  template <int kStep, int kHalf>
  static Floats scale(const Packed& packed, int /*part*/) {
    const Floats d = load_half(packed.d);
    return kSignedWeights ? mul(d, broadcast(0x1p-4f)) : d;
  }
};

struct Q4_1 : BlocksOf32 {
  static constexpr ggml_type kType = GGML_TYPE_Q4_1;
  static constexpr int kOffset = 0, kMaxWeight = 15;
  static constexpr bool kHasMinimum = true;

  struct Source {
    uint16_t d, m;
    uint8_t quants[16];
  };
  struct Packed {
    std::byte quants[kNibbleVectors * kVectorBytes];
    uint16_t d[kLanes], m[kLanes];
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.d[lane] = source.d;
    packed.m[lane] = source.m;
    copy_words(source.quants, kNibbleVectors, lane, packed.quants);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    for (int g = 0; g < 4; ++g) w[g] = nibbles<kHalf>(packed.quants, g);
  }
};

// The fifth bits of 32 quants are one vector: bit 4 * h + g of a byte belongs to the byte at
// the same place in vector g of half h of the weights. (In the file bit k is that of input
// k.) They are inverted where five_bits wants that.
inline void pack_fifth_bits(const uint8_t (&source)[4], int lane, std::byte* vector) {
  for (int k = 0; k < 32; ++k) {
    const int bit = ((source[k / 8] >> (k % 8)) & 1) ^ (kFifthOffset != 0 ? 1 : 0);
    const int place = byte_place(k % kHalfStep, lane);
    const int shift = k / kHalfStep * 4 + place / kVectorBytes;
    vector[place % kVectorBytes] |= static_cast<std::byte>(bit << shift);
  }
}

// Four vectors of weights: nibbles of `low` and fifth bits.
template <int kNibble, int kHalf, int kGroup = 0>
inline void unpack_five_bits(const std::byte* low, Bytes fifth, Bytes (&w)[4]) {
  w[kGroup] = five_bits<kNibble, 4 * kHalf + kGroup>(load_bytes(low + kGroup * kVectorBytes), fifth);
  if constexpr (kGroup < 3) unpack_five_bits<kNibble, kHalf, kGroup + 1>(low, fifth, w);
}

struct Q5_0 : BlocksOf32 {
  static constexpr ggml_type kType = GGML_TYPE_Q5_0;
  static constexpr int kOffset = 16 - kFifthOffset, kMaxWeight = 31;
  static constexpr bool kHasMinimum = false;

  struct Source {
    uint16_t d;
    uint8_t fifth[4];
    uint8_t quants[16];
  };
  struct Packed {
    std::byte quants[kNibbleVectors * kVectorBytes];
    std::byte fifth[kVectorBytes];
    uint16_t d[kLanes];
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.d[lane] = source.d;
    pack_fifth_bits(source.fifth, lane, packed.fifth);
    copy_words(source.quants, kNibbleVectors, lane, packed.quants);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    unpack_five_bits<kHalf, kHalf>(packed.quants, load_bytes(packed.fifth), w);
  }
};

struct Q5_1 : BlocksOf32 {
  static constexpr ggml_type kType = GGML_TYPE_Q5_1;
  static constexpr int kOffset = -kFifthOffset, kMaxWeight = 31;
  static constexpr bool kHasMinimum = true;

  struct Source {
    uint16_t d, m;
    uint8_t fifth[4];
    uint8_t quants[16];
  };
  struct Packed {
    std::byte quants[kNibbleVectors * kVectorBytes];
    std::byte fifth[kVectorBytes];
    uint16_t d[kLanes], m[kLanes];
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.d[lane] = source.d;
    packed.m[lane] = source.m;
    pack_fifth_bits(source.fifth, lane, packed.fifth);
    copy_words(source.quants, kNibbleVectors, lane, packed.quants);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    unpack_five_bits<kHalf, kHalf>(packed.quants, load_bytes(packed.fifth), w);
  }
};

// Its quants are signed; kByteBias makes them unsigned where dot16 wants that.
struct Q8_0 : BlocksOf32 {
  static constexpr ggml_type kType = GGML_TYPE_Q8_0;
  static constexpr int kOffset = kByteBias, kMaxWeight = 255;
  static constexpr bool kHasMinimum = false;

  struct Source {
    uint16_t d;
    uint8_t quants[32];
  };
  struct Packed {
    std::byte quants[8 * kVectorBytes];
    uint16_t d[kLanes];
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    packed.d[lane] = source.d;
    uint8_t biased[32];
    for (int i = 0; i < 32; ++i) biased[i] = static_cast<uint8_t>(source.quants[i] + kByteBias);
    copy_words(biased, 8, lane, packed.quants);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    for (int g = 0; g < 4; ++g) w[g] = load_bytes(packed.quants + (4 * kHalf + g) * kVectorBytes);
  }
};

// What nibbles of MXFP4 name: floats of a sign, two bits of exponent and one of mantissa, here times 2.
// Where weights are unsigned the largest is added to them.
constexpr int kMxfp4Offset = kSignedWeights ? 0 : 12;
constexpr uint8_t mxfp4_weight(int value) {
  return static_cast<uint8_t>(value + kMxfp4Offset);
}
constexpr uint8_t kMxfp4Weights[16] = {
    mxfp4_weight(0),  mxfp4_weight(1),  mxfp4_weight(2),  mxfp4_weight(3),
    mxfp4_weight(4),  mxfp4_weight(6),  mxfp4_weight(8),  mxfp4_weight(12),
    mxfp4_weight(0),  mxfp4_weight(-1), mxfp4_weight(-2), mxfp4_weight(-3),
    mxfp4_weight(-4), mxfp4_weight(-6), mxfp4_weight(-8), mxfp4_weight(-12)};

// The scale is a power of two.
struct MXFP4 : BlocksOf32 {
  static constexpr ggml_type kType = GGML_TYPE_MXFP4;
  static constexpr int kOffset = kMxfp4Offset, kMaxWeight = kSignedWeights ? 255 : 24;
  static constexpr bool kHasMinimum = false;

  struct Source {
    uint8_t exponent;
    uint8_t quants[16];
  };
  struct Packed {
    std::byte quants[kNibbleVectors * kVectorBytes];
    uint16_t d[kLanes];  // bfloat16, which has all powers of two that a float has
  };

  static void pack(const Source& source, int lane, Packed& packed) {
    // Half of 2^(exponent - 127). Below 2^-126 floats have no exponent of their own.
    const int exponent = source.exponent;
    packed.d[lane] = static_cast<uint16_t>(exponent < 2 ? 0x20 << exponent : (exponent - 1) << 7);
    copy_words(source.quants, kNibbleVectors, lane, packed.quants);
  }
  template <int kStep, int kHalf>
  static void unpack(const Packed& packed, int /*part*/, Bytes (&w)[4]) {
    for (int g = 0; g < 4; ++g) w[g] = look_up(kMxfp4Weights, nibbles<kHalf>(packed.quants, g));
  }
  template <int kStep, int kHalf>
  static Floats scale(const Packed& packed, int /*part*/) {
    return load_bfloat(packed.d);
  }
};

}  // namespace forerun::kernels::FORERUN_ISA
