// What simd_*.h of most sets share: made of their other functions. simd_neon.h has its own,
// with fewer instructions.
#pragma once

#include <cstdint>

namespace forerun::kernels::FORERUN_ISA {

// The same number in every lane, for sums to begin with.
template <int32_t kValue>
inline Ints constant_ints() {
  return broadcast_int(kValue);
}
// An fma whose summand is used again, for instructions that overwrite it.
inline Floats fma_keeping(Floats a, Floats b, const Floats& c) {
  return fma(a, b, c);
}

// Weights of five bits, less kFifthOffset: nibble kNibble of each byte of `low`, and bit
// kBit of `fifth` as the fifth, which is inverted where kFifthOffset is not 0.
constexpr int kFifthOffset = 0;
template <int kNibble, int kBit>
inline Bytes five_bits(Bytes low, Bytes fifth) {
  return either(bits<4 * kNibble, 0x0F>(low), bits<kBit - 4, 0x10>(fifth));
}

// Weights of six bits: nibble kStep / 2 of each byte of `low`, and above it bits 2 * kStep
// and 2 * kStep + 1 of `high`. If kSignedWeights, they are signed, and times 4.
template <int kStep>
inline Bytes six_bits(Bytes low, Bytes high) {
  return either(bits<4 * (kStep / 2), 0x0F>(low), bits<2 * kStep - 4, 0x30>(high));
}

}  // namespace forerun::kernels::FORERUN_ISA
