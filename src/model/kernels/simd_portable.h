// Vectors of kLanes numbers in C++ with the vector types of GCC and Clang, which every
// CPU can do something with. The readable definition of what the other simd_*.h do;
// exactly one of them is included by a kernel file, which says with FORERUN_ISA in
// which namespace.
//
// All arithmetic rounds each operation once (fma is fused), so results are the same
// bits in every implementation; only reduce_add of floats may add in another order.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/half_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kLanes = 4;
// Rows of activations that one product step keeps in registers.
constexpr int kMaxRows = 4;
constexpr int kMaxFloatRows = 4;  // where weights are floats
// Weights are unpacked once for all rows from so many groups of them on: those with a scale
// for 32, and for 16, and, if kUnpacksFloats, more than one group of those that are numbers.
constexpr int kUnpackedGroups[] = {3, 2};
constexpr bool kUnpacksFloats = true;
// Queries and vectors of keys or values whose sums attention keeps in registers.
constexpr int kTileQueries = 4, kTileVectors = 4;
// Inputs of an output that lie together in a tile: 4, as dot16 wants it, unless products are
// computed otherwise.
constexpr int kInputsTogether = 4;
// Added to 8-bit weights when packed, so that they are unsigned where dot16 wants that.
constexpr int kByteBias = 0;
// Whether scales are computed before the dot products that they are for: several rows would
// wait for them where the compiler leaves instructions in this order.
constexpr bool kScalesFirst = false;
// Whether quants that have an offset become signed weights without one. They are packed as
// signed numbers then, and unpacked as the upper bits of bytes.
constexpr bool kSignedWeights = false;
// Where what comes next is fetched to: 3 is the first cache, 2 the second.
constexpr int kPrefetchLocality = 3;

typedef float FloatVector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));
typedef int16_t ShortVector __attribute__((vector_size(4 * kLanes)));
typedef uint8_t ByteVector __attribute__((vector_size(4 * kLanes)));

struct Floats {
  FloatVector v;
};
struct Ints {
  IntVector v;
};
// Four bytes per lane.
struct Bytes {
  ByteVector v;
};

template <typename To, typename From>
inline To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}
template <typename Vector>
inline Vector load_vector(const void* p) {
  Vector v;
  memcpy(&v, p, sizeof(v));
  return v;
}

inline Floats broadcast(float x) {
  return {FloatVector{x, x, x, x}};
}
inline Floats load(const float* p) {
  return {load_vector<FloatVector>(p)};
}
inline void store(float* p, Floats a) {
  memcpy(p, &a.v, sizeof(a.v));
}
inline Floats add(Floats a, Floats b) {
  return {a.v + b.v};
}
inline Floats sub(Floats a, Floats b) {
  return {a.v - b.v};
}
inline Floats mul(Floats a, Floats b) {
  return {a.v * b.v};
}
inline Floats div(Floats a, Floats b) {
  return {a.v / b.v};
}

#ifndef __FP_FAST_FMAF
typedef float FloatPair __attribute__((vector_size(8)));
typedef double DoublePair __attribute__((vector_size(16)));
typedef int64_t LongPair __attribute__((vector_size(16)));
struct TwoPairs {
  FloatPair lo, hi;
};
// In double precision the product is exact. The sum is rounded to odd (if it is not
// exact, to that neighbour whose last bit is 1), which leaves it on its side of the
// middle between two floats. (On pairs and not lane by lane: of that GCC 12 makes wrong
// code at -O3 where such sums follow each other.)
inline FloatPair fused_multiply_add(FloatPair a, FloatPair b, FloatPair c) {
  const DoublePair product =
      __builtin_convertvector(a, DoublePair) * __builtin_convertvector(b, DoublePair);
  const DoublePair summand = __builtin_convertvector(c, DoublePair);
  const DoublePair sum = product + summand;
  const DoublePair shared = sum - product;
  const DoublePair error = (product - (sum - shared)) + (summand - shared);
  const LongPair below = error < 0.0, inexact = below | (error > 0.0);
  const LongPair toward_zero = inexact & (below ^ (sum < 0.0));  // -1 where it is
  const LongPair odd = (bits_as<LongPair>(sum) + toward_zero) | (inexact & 1);
  return __builtin_convertvector(bits_as<DoublePair>(odd), FloatPair);
}
#endif
// a * b + c, rounded once.
inline Floats fma(Floats a, Floats b, Floats c) {
#ifdef __FP_FAST_FMAF
  for (int i = 0; i < kLanes; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return c;
#else
  const auto x = bits_as<TwoPairs>(a), y = bits_as<TwoPairs>(b), z = bits_as<TwoPairs>(c);
  return bits_as<Floats>(
      TwoPairs{fused_multiply_add(x.lo, y.lo, z.lo), fused_multiply_add(x.hi, y.hi, z.hi)});
#endif
}
// Which of two zeros it is is not defined; if one is a NaN, it is b or a NaN.
inline Floats max(Floats a, Floats b) {
  return {a.v > b.v ? a.v : b.v};
}
inline Floats min(Floats a, Floats b) {
  return {a.v < b.v ? a.v : b.v};
}
inline Floats abs(Floats a) {
  return {bits_as<FloatVector>(bits_as<IntVector>(a.v) & 0x7FFFFFFF)};
}
inline float reduce_max(Floats a) {
  float m = a.v[0];
  for (int i = 1; i < kLanes; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}
inline float reduce_add(Floats a) {
  return (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]);
}
// Lane j of a[i] and lane i of a[j] change places.
inline void transpose(Floats (&a)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < i; ++j) {
      const float x = a[i].v[j];
      a[i].v[j] = a[j].v[i];
      a[j].v[i] = x;
    }
  }
}

// Four numbers that vectors are multiplied with, one after another.
struct Four {
  const float* p;
};
inline Four load_four(const float* p) {
  return {p};
}
// a * b[kIndex] + c, rounded once.
template <int kIndex>
inline Floats fma_by(Floats a, Four b, Floats c) {
  return fma(a, broadcast(b.p[kIndex]), c);
}

// kLanes numbers of half precision; half_to_float() of each.
inline Floats load_half(const uint16_t* p) {
  const IntVector h = {p[0], p[1], p[2], p[3]};
  const IntVector magnitude = (h & 0x7FFF) << 13;
  const IntVector rebased =
      magnitude + (magnitude < (31 << 23) ? IntVector{} + (112 << 23) : IntVector{} + (224 << 23));
  const FloatVector subnormal = __builtin_convertvector(h & 0x3FF, FloatVector) * 0x1p-24f;
  const IntVector bits = magnitude < (1 << 23) ? bits_as<IntVector>(subnormal) : rebased;
  return {bits_as<FloatVector>(bits | (h & 0x8000) << 16)};
}
// kLanes numbers of type bfloat16.
inline Floats load_bfloat(const uint16_t* p) {
  return {bits_as<FloatVector>(IntVector{p[0], p[1], p[2], p[3]} << 16)};
}
// kLanes signed bytes.
inline Floats load_int8(const int8_t* p) {
  return {__builtin_convertvector((IntVector{p[0], p[1], p[2], p[3]}), FloatVector)};
}
// kLanes unsigned bytes.
inline Floats load_uint8(const uint8_t* p) {
  return {__builtin_convertvector((IntVector{p[0], p[1], p[2], p[3]}), FloatVector)};
}

inline Ints broadcast_int(int32_t x) {
  return {IntVector{x, x, x, x}};
}
inline Ints add(Ints a, Ints b) {
  return {a.v + b.v};
}
inline Floats to_floats(Ints a) {
  return {__builtin_convertvector(a.v, FloatVector)};
}
// The floats that have these bits.
inline Floats as_floats(Ints a) {
  return {bits_as<FloatVector>(a.v)};
}
// To the nearest integer, ties to even. |a| < 2^22.
inline Ints round_to_ints(Floats a) {
  // Floats from 2^23 to 2^24 are integers; the last bits of their bits are the number.
  return {bits_as<IntVector>(a.v + 0x1.8p23f) - bits_as<int32_t>(0x1.8p23f)};
}
inline int32_t reduce_add(Ints a) {
  return (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]);
}
// The low bytes of all lanes.
inline void store_int8(int8_t* p, Ints a) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}
// The float whose exponent is the lowest 8 bits of the bits of a, that is 2^(n - 127) where
// they are n. Bit 8 must be 0.
inline Floats exponent_of_bits(Floats a) {
  return {bits_as<FloatVector>(bits_as<IntVector>(a.v) << 23)};
}
// 2^n for integers -126 <= n <= 127.
inline Floats exp2_int(Ints n) {
  return {bits_as<FloatVector>((n.v + 127) << 23)};
}

inline Bytes load_bytes(const std::byte* p) {
  return {load_vector<ByteVector>(p)};
}
// (a >> kShift) & kMask, byte by byte; a negative shift goes to the left. kMask has no
// bit that the shift brings in from a neighbouring byte.
template <int kShift, uint8_t kMask>
inline Bytes bits(Bytes a) {
  if constexpr (kShift > 0) a.v >>= static_cast<uint8_t>(kShift);
  if constexpr (kShift < 0) a.v <<= static_cast<uint8_t>(-kShift);
  return {a.v & kMask};
}
inline Bytes either(Bytes a, Bytes b) {
  return {a.v | b.v};
}
// What the table has at the places that bytes, all below 16, name.
inline Bytes look_up(const uint8_t (&table)[16], Bytes places) {
  Bytes found;
  for (int i = 0; i < 4 * kLanes; ++i) found.v[i] = table[places.v[i]];
  return found;
}

// acc[lane] += sum over g < 4 and j < 4 of w[g][4 * lane + j] * x[4 * g + j].
// Weights are at most kMaxWeight, unsigned. (kMaxWeight 255: 8 bits, with kByteBias in them
// and signed if that is 0.) |x| <= 127.
template <int kMaxWeight>
inline Ints dot16(Ints acc, const Bytes* w, const int8_t* x) {
  // A lane is two numbers of 16 bits with two bytes each; so many sums of two products
  // fit into these.
  constexpr int kSums = kMaxWeight == 255 ? 1 : kMaxWeight > 31 ? 2 : 4;
  static_assert(kSums * 2 * 127 * (kMaxWeight == 255 ? 128 : kMaxWeight) < 0x8000);
  for (int first = 0; first < 4; first += kSums) {
    ShortVector sums{};
    for (int g = first; g < first + kSums; ++g) {
      const ShortVector weights = bits_as<ShortVector>(w[g].v);
      const ShortVector even = kMaxWeight == 255 ? (weights << 8) >> 8 : weights & 0xFF;
      const ShortVector four = bits_as<ShortVector>(broadcast_int(load_vector<int32_t>(x + 4 * g)).v);
      sums += even * ((four << 8) >> 8) + (weights >> 8) * (four >> 8);
    }
    const IntVector pairs = bits_as<IntVector>(sums);
    acc.v += ((pairs << 16) >> 16) + (pairs >> 16);
  }
  return acc;
}

}  // namespace forerun::kernels::FORERUN_ISA

#include "model/kernels/simd_plain_impl.h"
