// exp() of a vector, for softmax and gates: within 1 ulp of the exact value over the
// whole range, subnormal results included. exp(0) is exactly 1, exp(-infinity) exactly
// 0, exp(infinity) infinity and exp(NaN) a NaN. Every lane is computed alike, so an
// element's bits do not depend on its place.
#pragma once

namespace forerun::kernels::FORERUN_ISA {

// Adding 1.5 * 2^23 to a small number leaves its nearest integer, ties to even.
inline Floats round_small(Floats x) {
  const Floats magic = broadcast(0x1.8p23f);
  return sub(add(x, magic), magic);
}

// exp(x - n * ln 2) for some vectors, where n is the integer nearest to x / ln 2: in two parts
// of ln 2, then 1 + r + r^2 * p(r), p near the minimax polynomial: relative error 1.1e-8. It is
// one long chain; vectors side by side keep the units busy.
template <int kVectors>
inline void exp_of_rest(const Floats (&x)[kVectors], const Floats (&n)[kVectors],
                        Floats (&y)[kVectors]) {
  Floats r[kVectors];
  const auto each = [](auto f) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) f(v);
  };
  const auto add_coefficient = [&](float c) {
    each([&](int v) { y[v] = fma(y[v], r[v], broadcast(c)); });
  };
  each([&](int v) { r[v] = fma(n[v], broadcast(-0x1.62e43p-1f), x[v]); });
  each([&](int v) { r[v] = fma(n[v], broadcast(0x1.05c61p-29f), r[v]); });
  each([&](int v) { y[v] = broadcast(0x1.6d110ap-10f); });
  for (const float c : {0x1.120b6ep-7f, 0x1.55551ap-5f, 0x1.5554dcp-3f, 0.5f, 1.0f, 1.0f})
    add_coefficient(c);
}

constexpr float kLog2E = 0x1.715476p+0f;

inline Floats exp(Floats x) {
  // Beyond these limits the result is 0 or infinity. The order of the arguments keeps NaNs.
  x = min(broadcast(90.0f), max(broadcast(-105.0f), x));
  const Floats magic = broadcast(0x1.8p23f);
  const Floats n = sub(fma(x, broadcast(kLog2E), magic), magic);
  Floats p[1];
  exp_of_rest({x}, {n}, p);

  // 2^n in two factors: n reaches beyond the exponents of normal numbers. The first
  // product is exact. Here max() makes a number of NaN, as round_to_ints() wants.
  const Floats half = round_small(mul(n, broadcast(0.5f)));
  const Floats rest = sub(n, half);
  const Floats lowest = broadcast(-80.0f);
  const Floats scaled = mul(p[0], exp2_int(round_to_ints(max(half, lowest))));
  return mul(scaled, exp2_int(round_to_ints(max(rest, lowest))));
}

// The same of numbers that are not positive, in half the operations. The last bits of what
// n is read off are n + 64 + 127: the exponent of 2^(n + 64), which is a normal number for
// all n from -152 to 0. The product with it is exact, the one with 2^-64 rounds.
template <int kVectors>
inline void exp_not_positive(Floats (&x)[kVectors]) {
  const Floats magic = broadcast(0x1.8p23f + 64 + 127);
  Floats shifted[kVectors], n[kVectors], p[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    x[v] = max(broadcast(-105.0f), x[v]);
    shifted[v] = fma(x[v], broadcast(kLog2E), magic);
    n[v] = sub(shifted[v], magic);
  }
  exp_of_rest(x, n, p);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v)
    x[v] = mul(mul(p[v], exponent_of_bits(shifted[v])), broadcast(0x1p-64f));
}

}  // namespace forerun::kernels::FORERUN_ISA
