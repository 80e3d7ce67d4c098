// Vectors of 8 lanes, two registers each, for ARM64 with the dot product extension, and with
// FORERUN_I8MM defined for the one that multiplies matrices. See simd_portable.h for what
// each function is.
#pragma once

#include <arm_neon.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/kernels/half_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kLanes = 8;
// Four rows have 16 registers of sums; with 8 of weights and one of activations per row
// that leaves four.
constexpr int kMaxRows = 4;
constexpr int kMaxFloatRows = 4;
constexpr int kUnpackedGroups[] = {3, 2};
constexpr bool kUnpacksFloats = true;
// Sums in 16 registers.
constexpr int kTileQueries = 4, kTileVectors = 2;
#ifdef FORERUN_I8MM
constexpr int kInputsTogether = 8;  // see products_pairs_impl.h
#else
constexpr int kInputsTogether = 4;
#endif
constexpr int kByteBias = 0;
constexpr bool kScalesFirst = true;
constexpr bool kSignedWeights = true;
// Fetching into the first cache, thousands of bytes ahead, leaves a Neoverse V1 a third of
// its bandwidth.
constexpr int kPrefetchLocality = 2;

struct Floats {
  float32x4_t lo, hi;
};
struct Ints {
  int32x4_t lo, hi;
};
struct Bytes {
  uint8x16_t lo, hi;
};

inline Floats broadcast(float x) {
  return {vdupq_n_f32(x), vdupq_n_f32(x)};
}
inline Floats load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4)};
}
inline void store(float* p, Floats a) {
  vst1q_f32(p, a.lo);
  vst1q_f32(p + 4, a.hi);
}
inline Floats add(Floats a, Floats b) {
  return {vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)};
}
inline Floats sub(Floats a, Floats b) {
  return {vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)};
}
inline Floats mul(Floats a, Floats b) {
  return {vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)};
}
inline Floats div(Floats a, Floats b) {
  return {vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)};
}
inline Floats fma(Floats a, Floats b, Floats c) {
  return {vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
}
inline Floats max(Floats a, Floats b) {
  return {vmaxq_f32(a.lo, b.lo), vmaxq_f32(a.hi, b.hi)};
}
inline Floats min(Floats a, Floats b) {
  return {vminq_f32(a.lo, b.lo), vminq_f32(a.hi, b.hi)};
}
inline Floats abs(Floats a) {
  return {vabsq_f32(a.lo), vabsq_f32(a.hi)};
}
inline float reduce_max(Floats a) {
  return vmaxvq_f32(vmaxq_f32(a.lo, a.hi));
}
inline float reduce_add(Floats a) {
  return vaddvq_f32(vaddq_f32(a.lo, a.hi));
}
// Four squares of 4 x 4, of which two change places.
inline void transpose(Floats (&a)[kLanes]) {
  const auto square = [](float32x4_t& r0, float32x4_t& r1, float32x4_t& r2, float32x4_t& r3) {
    const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(r0, r1));
    const float64x2_t odd01 = vreinterpretq_f64_f32(vtrn2q_f32(r0, r1));
    const float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(r2, r3));
    const float64x2_t odd23 = vreinterpretq_f64_f32(vtrn2q_f32(r2, r3));
    r0 = vreinterpretq_f32_f64(vtrn1q_f64(even01, even23));
    r1 = vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23));
    r2 = vreinterpretq_f32_f64(vtrn2q_f64(even01, even23));
    r3 = vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23));
  };
  square(a[0].lo, a[1].lo, a[2].lo, a[3].lo);
  square(a[0].hi, a[1].hi, a[2].hi, a[3].hi);
  square(a[4].lo, a[5].lo, a[6].lo, a[7].lo);
  square(a[4].hi, a[5].hi, a[6].hi, a[7].hi);
  for (int i = 0; i < 4; ++i) {
    const float32x4_t x = a[i].hi;
    a[i].hi = a[i + 4].lo;
    a[i + 4].lo = x;
  }
}

// A register, since the instruction takes its factor from one.
struct Four {
  float32x4_t v;
};
inline Four load_four(const float* p) {
  return {vld1q_f32(p)};
}
template <int kIndex>
inline Floats fma_by(Floats a, Four b, Floats c) {
  return {vfmaq_laneq_f32(c.lo, a.lo, b.v, kIndex), vfmaq_laneq_f32(c.hi, a.hi, b.v, kIndex)};
}

inline Floats load_half(const uint16_t* p) {
  const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16(p));
  return {vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
}
inline Floats load_bfloat(const uint16_t* p) {
  const uint16x8_t b = vld1q_u16(p);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(b, 16))};
}
inline Ints broadcast_int(int32_t x) {
  return {vdupq_n_s32(x), vdupq_n_s32(x)};
}
inline Ints add(Ints a, Ints b) {
  return {vaddq_s32(a.lo, b.lo), vaddq_s32(a.hi, b.hi)};
}
// A load that stays one. The compiler would copy a register that has the same, which takes time
// of the vector units, which is scarce; loading takes none of it.
template <typename Register>
inline Register load_again(const Register& from) {
  return *static_cast<const volatile Register*>(&from);
}
// Bytes as floats: they become the lowest bits of 2^23, which is then taken away. That takes
// less of the vector units than widening and converting them.
inline float32x4_t byte_floats(uint8x8_t bytes, const uint8x16_t& places, float zero) {
  static constexpr uint32x4_t kBase = {0x4B000000, 0x4B000000, 0x4B000000, 0x4B000000};
  const uint8x16_t table = vcombine_u8(bytes, vdup_n_u8(0));
  const uint8x16_t base = vreinterpretq_u8_u32(load_again(kBase));
  return vsubq_f32(vreinterpretq_f32_u8(vqtbx1q_u8(base, table, places)), vdupq_n_f32(zero));
}
inline Floats byte_floats(uint8x8_t bytes, float zero) {
  constexpr uint8_t kKept = 0xFF;  // of the base
  static constexpr uint8x16_t kLow = {0, kKept, kKept, kKept, 1, kKept, kKept, kKept,
                                      2, kKept, kKept, kKept, 3, kKept, kKept, kKept};
  static constexpr uint8x16_t kHigh = {4, kKept, kKept, kKept, 5, kKept, kKept, kKept,
                                       6, kKept, kKept, kKept, 7, kKept, kKept, kKept};
  return {byte_floats(bytes, kLow, zero), byte_floats(bytes, kHigh, zero)};
}
inline Floats load_uint8(const uint8_t* p) {
  return byte_floats(vld1_u8(p), 0x1p23f);
}
inline Floats load_int8(const int8_t* p) {
  const int16x8_t wide = vmovl_s8(vld1_s8(p));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), vcvtq_f32_s32(vmovl_high_s16(wide))};
}
template <int32_t kValue>
inline Ints constant_ints() {
  static constexpr int32x4_t kInts = {kValue, kValue, kValue, kValue};
  return {load_again(kInts), load_again(kInts)};
}
inline Floats fma_keeping(Floats a, Floats b, const Floats& c) {
  const float32x4_t lo = vfmaq_f32(load_again(c.lo), a.lo, b.lo);
  return {lo, vfmaq_f32(load_again(c.hi), a.hi, b.hi)};
}
inline Floats to_floats(Ints a) {
  return {vcvtq_f32_s32(a.lo), vcvtq_f32_s32(a.hi)};
}
inline Floats as_floats(Ints a) {
  return {vreinterpretq_f32_s32(a.lo), vreinterpretq_f32_s32(a.hi)};
}
inline Ints round_to_ints(Floats a) {
  return {vcvtnq_s32_f32(a.lo), vcvtnq_s32_f32(a.hi)};
}
inline int32_t reduce_add(Ints a) {
  return vaddvq_s32(vaddq_s32(a.lo, a.hi));
}
inline void store_int8(int8_t* p, Ints a) {
  vst1_s8(p, vmovn_s16(vcombine_s16(vmovn_s32(a.lo), vmovn_s32(a.hi))));
}
inline Floats exponent_of_bits(Floats a) {
  return {vreinterpretq_f32_s32(vshlq_n_s32(vreinterpretq_s32_f32(a.lo), 23)),
          vreinterpretq_f32_s32(vshlq_n_s32(vreinterpretq_s32_f32(a.hi), 23))};
}
inline Floats exp2_int(Ints n) {
  const int32x4_t bias = vdupq_n_s32(127);
  return {vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n.lo, bias), 23)),
          vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n.hi, bias), 23))};
}

inline Bytes load_bytes(const std::byte* p) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(p);
  return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
}
template <int kShift, uint8_t kMask>
inline uint8x16_t bits(uint8x16_t a) {
  if constexpr (kShift > 0) a = vshrq_n_u8(a, kShift);
  if constexpr (kShift < 0) a = vshlq_n_u8(a, -kShift);
  constexpr int kLeft = ((0xFF >> std::max(kShift, 0)) << std::max(-kShift, 0)) & 0xFF;
  if constexpr ((kLeft & ~kMask) != 0) a = vandq_u8(a, vdupq_n_u8(kMask));
  return a;
}
template <int kShift, uint8_t kMask>
inline Bytes bits(Bytes a) {
  return {bits<kShift, kMask>(a.lo), bits<kShift, kMask>(a.hi)};
}
inline Bytes either(Bytes a, Bytes b) {
  return {vorrq_u8(a.lo, b.lo), vorrq_u8(a.hi, b.hi)};
}
inline Bytes look_up(const uint8_t (&table)[16], Bytes places) {
  const uint8x16_t all = vld1q_u8(table);
  return {vqtbl1q_u8(all, places.lo), vqtbl1q_u8(all, places.hi)};
}

// In two operations, where shifting, masking and joining would take four: a test makes 0xFF
// of an inverted fifth bit, and the nibble is inserted below. The upper four bits are then
// -16, or 0.
constexpr int kFifthOffset = 16;
template <int kNibble, int kBit>
inline uint8x16_t five_bits(uint8x16_t low, uint8x16_t fifth) {
  const uint8x16_t upper = vtstq_u8(fifth, vdupq_n_u8(1 << kBit));
  if constexpr (kNibble == 1) return vsriq_n_u8(upper, low, 4);
  return vbslq_u8(vdupq_n_u8(0x0F), low, upper);
}
template <int kNibble, int kBit>
inline Bytes five_bits(Bytes low, Bytes fifth) {
  return {five_bits<kNibble, kBit>(low.lo, fifth.lo), five_bits<kNibble, kBit>(low.hi, fifth.hi)};
}

// Inserting takes no masks: the nibble below the two upper bits, or these above it.
template <int kStep>
inline uint8x16_t six_bits(uint8x16_t low, uint8x16_t high) {
  // (In clang's header these are macros, to which arguments of templates are arguments of theirs.)
  constexpr int kShift = kStep < 2 ? 2 * kStep : 2 * kStep - 6;
  const uint8x16_t upper = bits<kShift, 0xFF>(high);
  if constexpr (kStep < 2) {
    return vsliq_n_u8(vshlq_n_u8(low, 2), upper, 6);
  } else {
    const uint8x16_t lower = bits<0, 0xF0>(low);
    return vsriq_n_u8(upper, lower, 2);
  }
}
template <int kStep>
inline Bytes six_bits(Bytes low, Bytes high) {
  return {six_bits<kStep>(low.lo, high.lo), six_bits<kStep>(low.hi, high.hi)};
}

// Signed weights, or unsigned ones small enough to be signed as well.
template <int kGroup>
inline Ints dot4(Ints acc, Bytes w, int8x16_t x) {
  return {vdotq_laneq_s32(acc.lo, vreinterpretq_s8_u8(w.lo), x, kGroup),
          vdotq_laneq_s32(acc.hi, vreinterpretq_s8_u8(w.hi), x, kGroup)};
}
template <int kMaxWeight>
inline Ints dot16(Ints acc, const Bytes* w, const int8_t* x) {
  static_assert(kMaxWeight < 128 || kMaxWeight == 255);
  const int8x16_t q = vld1q_s8(x);
  acc = dot4<0>(acc, w[0], q);
  acc = dot4<1>(acc, w[1], q);
  acc = dot4<2>(acc, w[2], q);
  return dot4<3>(acc, w[3], q);
}

}  // namespace forerun::kernels::FORERUN_ISA
