// exp and log built from IEEE operations alone, so that they give the same bits on
// every machine (libm's differ between systems and versions). Sampling uses nothing
// else: equal logits and an equal seed then mean equal text everywhere. Files that
// include this header must be compiled with -ffp-contract=off.
//
// Both are branch-free, so that loops over them vectorise, and use the plain power
// series to a length that makes its remainder vanish in rounding.
#pragma once

#include <bit>
#include <cstdint>

namespace forerun::ieee {

// exp(x) for x <= 0 or -inf, within 2 ulp; 0 below -87, where floats near underflow.
inline float exp_nonpositive(float x) {
  constexpr float kLowest = -87.0f;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x > kLowest ? x : kLowest;
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  float series = 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  // The low bits of `shifted` hold n; moved into the exponent field they make 2^n.
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
  const float result = series * std::bit_cast<float>(exponent);
  return x >= kLowest ? result : 0.0f;
}

// log(x) for a positive normal x, within 3 ulp (also next to 1, where it vanishes).
inline double log(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDu;  // bits of sqrt(1/2)
  // x = 2^k * m with m in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t offset = bits - kSqrtHalf;
  const double m = std::bit_cast<double>((offset & 0x000FFFFFFFFFFFFFu) + kSqrtHalf);
  const double k = static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(offset) >> 52));
  // log(m) = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double series = 1.0 / 21;
  series = series * q + 1.0 / 19;
  series = series * q + 1.0 / 17;
  series = series * q + 1.0 / 15;
  series = series * q + 1.0 / 13;
  series = series * q + 1.0 / 11;
  series = series * q + 1.0 / 9;
  series = series * q + 1.0 / 7;
  series = series * q + 1.0 / 5;
  series = series * q + 1.0 / 3;
  return k * kLn2 + (2.0 * s + 2.0 * s * (q * series));
}

}  // namespace forerun::ieee
