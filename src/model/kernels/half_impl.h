// Half precision in scalar code, for every instruction set: a few scales per row need
// it, everything else uses load_half of the vector type.
#pragma once

#include <string.h>

#include <cstdint>

namespace forerun::kernels::FORERUN_ISA {

inline uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline float float_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

inline float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  // As bits of a float the exponent is 127 - 15 too small; infinities and NaNs need
  // the largest exponent there is.
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7FFF) << 13;
  const uint32_t rebased = magnitude + (magnitude < (31u << 23) ? 112u << 23 : 224u << 23);
  const float subnormal = static_cast<float>(h & 0x3FF) * 0x1p-24f;
  return float_from_bits(sign | (magnitude < (1u << 23) ? float_bits(subnormal) : rebased));
}

// Rounds to half precision and back: to nearest, ties to even.
inline float round_to_half(float x) {
  const float magnitude = __builtin_fabsf(x);
  if (magnitude >= 65520.0f) return __builtin_copysignf(__builtin_inff(), x);
  // Adding 2^(e + 13) to a number in [2^e, 2^(e + 1)) leaves 10 bits of it, as half
  // precision has; below 2^-14, where halves are subnormal, they are 2^-24 apart.
  const float binade = float_from_bits(float_bits(magnitude) & 0x7F800000);
  const float offset = (binade < 0x1p-14f ? 0x1p-14f : binade) * 0x1p13f;
  return __builtin_copysignf((magnitude + offset) - offset, x);
}

}  // namespace forerun::kernels::FORERUN_ISA
