// Vectors of 16 lanes for AVX-512 with VNNI. See simd_portable.h for what each function
// is.
#pragma once

#include <immintrin.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/half_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kLanes = 16;
constexpr int kMaxRows = 8;
constexpr int kMaxFloatRows = 10;
constexpr int kUnpackedGroups[] = {8, 3};
constexpr bool kUnpacksFloats = false;
// Sums in 24 of 32 registers.
constexpr int kTileQueries = 6, kTileVectors = 4;
constexpr int kInputsTogether = 4;
// vpdpbusd multiplies unsigned bytes (weights) with signed ones (activations).
constexpr int kByteBias = 128;
constexpr bool kScalesFirst = false;
constexpr bool kSignedWeights = false;
// To the second cache: up to a fifth more bandwidth than to the first where few threads read.
constexpr int kPrefetchLocality = 2;

struct Floats {
  __m512 v;
};
struct Ints {
  __m512i v;
};
struct Bytes {
  __m512i v;
};

inline Floats broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
inline Floats load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void store(float* p, Floats a) {
  _mm512_storeu_ps(p, a.v);
}
inline Floats add(Floats a, Floats b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Floats sub(Floats a, Floats b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Floats mul(Floats a, Floats b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Floats div(Floats a, Floats b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline Floats fma(Floats a, Floats b, Floats c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Floats max(Floats a, Floats b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Floats min(Floats a, Floats b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Floats abs(Floats a) {
  return {_mm512_abs_ps(a.v)};
}
inline float reduce_max(Floats a) {
  return _mm512_reduce_max_ps(a.v);
}
inline float reduce_add(Floats a) {
  return _mm512_reduce_add_ps(a.v);
}
// Squares of 4 x 4 within quarters of vectors, then the quarters.
inline void transpose(Floats (&a)[kLanes]) {
  for (int i = 0; i < kLanes; i += 4) {
    const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(a[i].v, a[i + 1].v));
    const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(a[i].v, a[i + 1].v));
    const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(a[i + 2].v, a[i + 3].v));
    const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(a[i + 2].v, a[i + 3].v));
    a[i].v = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    a[i + 1].v = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    a[i + 2].v = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    a[i + 3].v = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 low01 = _mm512_shuffle_f32x4(a[i].v, a[i + 4].v, 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(a[i].v, a[i + 4].v, 0xEE);
    const __m512 low23 = _mm512_shuffle_f32x4(a[i + 8].v, a[i + 12].v, 0x44);
    const __m512 high23 = _mm512_shuffle_f32x4(a[i + 8].v, a[i + 12].v, 0xEE);
    a[i].v = _mm512_shuffle_f32x4(low01, low23, 0x88);
    a[i + 4].v = _mm512_shuffle_f32x4(low01, low23, 0xDD);
    a[i + 8].v = _mm512_shuffle_f32x4(high01, high23, 0x88);
    a[i + 12].v = _mm512_shuffle_f32x4(high01, high23, 0xDD);
  }
}

struct Four {
  const float* p;
};
inline Four load_four(const float* p) {
  return {p};
}
template <int kIndex>
inline Floats fma_by(Floats a, Four b, Floats c) {
  return {_mm512_fmadd_ps(a.v, _mm512_set1_ps(b.p[kIndex]), c.v)};
}

inline Floats load_half(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Floats load_bfloat(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline Floats load_int8(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
inline Floats load_uint8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
}

inline Ints broadcast_int(int32_t x) {
  return {_mm512_set1_epi32(x)};
}
inline Ints add(Ints a, Ints b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline Floats to_floats(Ints a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
inline Floats as_floats(Ints a) {
  return {_mm512_castsi512_ps(a.v)};
}
inline Ints round_to_ints(Floats a) {
  return {_mm512_cvtps_epi32(a.v)};
}
inline int32_t reduce_add(Ints a) {
  return _mm512_reduce_add_epi32(a.v);
}
inline void store_int8(int8_t* p, Ints a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
inline Floats exponent_of_bits(Floats a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a.v), 23))};
}
inline Floats exp2_int(Ints n) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n.v, _mm512_set1_epi32(127)), 23))};
}

inline Bytes load_bytes(const std::byte* p) {
  return {_mm512_loadu_si512(p)};
}
// There are no shifts of bytes; the mask removes what comes from the neighbour.
template <int kShift, uint8_t kMask>
inline Bytes bits(Bytes a) {
  if constexpr (kShift > 0) a.v = _mm512_srli_epi16(a.v, kShift);
  if constexpr (kShift < 0) a.v = _mm512_slli_epi16(a.v, -kShift);
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(static_cast<char>(kMask)))};
}
inline Bytes either(Bytes a, Bytes b) {
  return {_mm512_or_si512(a.v, b.v)};
}
inline Bytes look_up(const uint8_t (&table)[16], Bytes places) {
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(all), places.v)};
}

// Adds the products of four weights per lane with four activations, the same ones in every
// lane. GCC 12 does not find the instruction that broadcasts them while it multiplies, and
// a broadcast of its own makes products a sixth slower.
inline Ints dot4(Ints acc, Bytes w, const int8_t* x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(acc.v)
      : "v"(w.v), "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
  return acc;
}
template <int kMaxWeight>
inline Ints dot16(Ints acc, const Bytes* w, const int8_t* x) {
  for (int g = 0; g < 4; ++g) acc = dot4(acc, w[g], x + 4 * g);
  return acc;
}

}  // namespace forerun::kernels::FORERUN_ISA

#include "model/kernels/simd_plain_impl.h"
