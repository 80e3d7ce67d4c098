// Vectors of 8 lanes for AVX2 with FMA and F16C, and with FORERUN_AVXVNNI defined for
// AVX-VNNI, whose integer dot products are one instruction. See simd_portable.h for
// what each function is.
#pragma once

#include <immintrin.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/half_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr int kLanes = 8;
constexpr int kMaxRows = 4;
constexpr int kMaxFloatRows = 5;
// Sums in 12 of 16 registers.
constexpr int kTileQueries = 6, kTileVectors = 2;
constexpr int kInputsTogether = 4;
constexpr int kPrefetchLocality = 3;
constexpr bool kUnpacksFloats = false;
constexpr bool kScalesFirst = false;
constexpr bool kSignedWeights = false;
#ifdef FORERUN_AVXVNNI
constexpr int kByteBias = 128;
constexpr int kUnpackedGroups[] = {6, 3};
#else
constexpr int kByteBias = 0;
constexpr int kUnpackedGroups[] = {3, 3};
#endif

struct Floats {
  __m256 v;
};
struct Ints {
  __m256i v;
};
struct Bytes {
  __m256i v;
};

inline Floats broadcast(float x) {
  return {_mm256_set1_ps(x)};
}
inline Floats load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
inline void store(float* p, Floats a) {
  _mm256_storeu_ps(p, a.v);
}
inline Floats add(Floats a, Floats b) {
  return {_mm256_add_ps(a.v, b.v)};
}
inline Floats sub(Floats a, Floats b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
inline Floats mul(Floats a, Floats b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
inline Floats div(Floats a, Floats b) {
  return {_mm256_div_ps(a.v, b.v)};
}
inline Floats fma(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline Floats max(Floats a, Floats b) {
  return {_mm256_max_ps(a.v, b.v)};
}
inline Floats min(Floats a, Floats b) {
  return {_mm256_min_ps(a.v, b.v)};
}
inline Floats abs(Floats a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}

inline float reduce_max(Floats a) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
inline float reduce_add(Floats a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
// Squares of 4 x 4 within halves of vectors, then the halves.
inline void transpose(Floats (&a)[kLanes]) {
  for (int i = 0; i < kLanes; i += 4) {
    const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(a[i].v, a[i + 1].v));
    const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(a[i].v, a[i + 1].v));
    const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(a[i + 2].v, a[i + 3].v));
    const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(a[i + 2].v, a[i + 3].v));
    a[i].v = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    a[i + 1].v = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    a[i + 2].v = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    a[i + 3].v = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
  }
  for (int i = 0; i < 4; ++i) {
    const __m256 x = a[i].v, y = a[i + 4].v;
    a[i].v = _mm256_permute2f128_ps(x, y, 0x20);
    a[i + 4].v = _mm256_permute2f128_ps(x, y, 0x31);
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
  return {_mm256_fmadd_ps(a.v, _mm256_broadcast_ss(b.p + kIndex), c.v)};
}

inline Floats load_half(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Floats load_bfloat(const uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline Floats load_int8(const int8_t* p) {
  return {
      _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
inline Floats load_uint8(const uint8_t* p) {
  return {
      _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}

inline Ints broadcast_int(int32_t x) {
  return {_mm256_set1_epi32(x)};
}
inline Ints add(Ints a, Ints b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
inline Floats to_floats(Ints a) {
  return {_mm256_cvtepi32_ps(a.v)};
}
inline Floats as_floats(Ints a) {
  return {_mm256_castsi256_ps(a.v)};
}
inline Ints round_to_ints(Floats a) {
  return {_mm256_cvtps_epi32(a.v)};
}
inline int32_t reduce_add(Ints a) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}
inline void store_int8(int8_t* p, Ints a) {
  const __m128i low_bytes = _mm_set1_epi32(0x0C080400);
  const __m128i lo = _mm_shuffle_epi8(_mm256_castsi256_si128(a.v), low_bytes);
  const __m128i hi = _mm_shuffle_epi8(_mm256_extracti128_si256(a.v, 1), low_bytes);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_unpacklo_epi32(lo, hi));
}
inline Floats exponent_of_bits(Floats a) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a.v), 23))};
}
inline Floats exp2_int(Ints n) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.v, _mm256_set1_epi32(127)), 23))};
}

inline Bytes load_bytes(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
// There are no shifts of bytes; the mask removes what comes from the neighbour.
template <int kShift, uint8_t kMask>
inline Bytes bits(Bytes a) {
  if constexpr (kShift > 0) a.v = _mm256_srli_epi16(a.v, kShift);
  if constexpr (kShift < 0) a.v = _mm256_slli_epi16(a.v, -kShift);
  return {_mm256_and_si256(a.v, _mm256_set1_epi8(static_cast<char>(kMask)))};
}
inline Bytes either(Bytes a, Bytes b) {
  return {_mm256_or_si256(a.v, b.v)};
}
inline Bytes look_up(const uint8_t (&table)[16], Bytes places) {
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), places.v)};
}

// Four activations, the same ones in every lane.
inline __m256i broadcast_four(const int8_t* x) {
  int32_t word;
  memcpy(&word, x, sizeof(word));
  return _mm256_set1_epi32(word);
}

#ifdef FORERUN_AVXVNNI

template <int kMaxWeight>
inline Ints dot16(Ints acc, const Bytes* w, const int8_t* x) {
  for (int g = 0; g < 4; ++g) acc.v = _mm256_dpbusd_avx_epi32(acc.v, w[g].v, broadcast_four(x + 4 * g));
  return acc;
}

#else

// vpmaddubsw adds pairs of products to 16 bits, and as many groups are added there as
// cannot overflow, before vpmaddwd widens the sums.
template <int kMaxWeight>
inline Ints dot16(Ints acc, const Bytes* w, const int8_t* x) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kMaxWeight == 255) {
    // Signed weights: their signs move to the activations. 2 * 128 * 127 < 2^15.
    for (int g = 0; g < 4; ++g) {
      const __m256i signed_x = _mm256_sign_epi8(broadcast_four(x + 4 * g), w[g].v);
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w[g].v), signed_x);
      acc.v = _mm256_add_epi32(acc.v, _mm256_madd_epi16(pairs, ones));
    }
  } else {
    constexpr int kPairSum = 2 * 127 * kMaxWeight;
    static_assert(2 * kPairSum < 0x8000);
    __m256i pairs[4];
    for (int g = 0; g < 4; ++g) pairs[g] = _mm256_maddubs_epi16(w[g].v, broadcast_four(x + 4 * g));
    __m256i front = _mm256_add_epi16(pairs[0], pairs[1]);
    const __m256i back = _mm256_add_epi16(pairs[2], pairs[3]);
    if constexpr (4 * kPairSum < 0x8000) {
      front = _mm256_add_epi16(front, back);
    } else {
      acc.v = _mm256_add_epi32(acc.v, _mm256_madd_epi16(back, ones));
    }
    acc.v = _mm256_add_epi32(acc.v, _mm256_madd_epi16(front, ones));
  }
  return acc;
}

#endif

}  // namespace forerun::kernels::FORERUN_ISA

#include "model/kernels/simd_plain_impl.h"
