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

inline Floats exp(Floats x) {
  // Beyond these limits the result is 0 or infinity. The order of the arguments keeps NaNs.
  x = min(broadcast(90.0f), max(broadcast(-105.0f), x));

  // x = n * ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts.
  const Floats magic = broadcast(0x1.8p23f);
  const Floats n = sub(fma(x, broadcast(0x1.715476p+0f), magic), magic);
  Floats r = fma(n, broadcast(-0x1.62e43p-1f), x);
  r = fma(n, broadcast(0x1.05c61p-29f), r);

  // exp(r) = 1 + r + r^2 * p(r), p near the minimax polynomial: relative error 1.1e-8.
  Floats p = broadcast(0x1.6d110ap-10f);
  p = fma(p, r, broadcast(0x1.120b6ep-7f));
  p = fma(p, r, broadcast(0x1.55551ap-5f));
  p = fma(p, r, broadcast(0x1.5554dcp-3f));
  p = fma(p, r, broadcast(0.5f));
  p = fma(p, r, broadcast(1.0f));
  p = fma(p, r, broadcast(1.0f));

  // 2^n in two factors: n reaches beyond the exponents of normal numbers. The first
  // product is exact. Here max() makes a number of NaN, as round_to_ints() wants.
  const Floats half = round_small(mul(n, broadcast(0.5f)));
  const Floats rest = sub(n, half);
  const Floats lowest = broadcast(-80.0f);
  p = mul(p, exp2_int(round_to_ints(max(half, lowest))));
  return mul(p, exp2_int(round_to_ints(max(rest, lowest))));
}

}  // namespace forerun::kernels::FORERUN_ISA
