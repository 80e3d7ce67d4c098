// What lies between the products of a layer: normalisation, activations as 8-bit
// integers, and gates. Each works on one row by itself, so there is nothing that other
// rows could change.
#pragma once

#include <math.h>
#include <string.h>

#include <cstdint>

#include "model/kernels/exp_impl.h"
#include "model/kernels/half_impl.h"
#include "model/kernels/kernels.h"

namespace forerun::kernels::FORERUN_ISA {

// The last n < kLanes numbers of a row, with zeros behind them.
inline Floats load_tail(const float* p, int64_t n) {
  float padded[kLanes] = {};
  memcpy(padded, p, n * sizeof(float));
  return load(padded);
}

inline void store_tail(float* p, Floats a, int64_t n) {
  float padded[kLanes];
  store(padded, a);
  memcpy(p, padded, n * sizeof(float));
}

// Squares are added in four chains of vectors, the sums of which differ between
// instruction sets in their last bits.
inline float sum_of_squares(const float* x, int64_t n) {
  constexpr int kChains = 4;
  Floats sums[kChains];
  for (Floats& sum : sums) sum = broadcast(0.0f);
  int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
    for (int c = 0; c < kChains; ++c) {
      const Floats v = load(x + i + c * kLanes);
      sums[c] = fma(v, v, sums[c]);
    }
  }
  for (; i < n; i += kLanes) {
    const Floats v = n - i >= kLanes ? load(x + i) : load_tail(x + i, n - i);
    sums[0] = fma(v, v, sums[0]);
  }
  return reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

inline void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const Floats factor = broadcast(1.0f / sqrtf(mean + eps));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Floats v = mul(load(x + i), factor);
    if (weight != nullptr) v = mul(v, load(weight + i));
    store(y + i, v);
  }
  if (i == n) return;
  Floats v = mul(load_tail(x + i, n - i), factor);
  if (weight != nullptr) v = mul(v, load_tail(weight + i, n - i));
  store_tail(y + i, v, n - i);
}

// The sum of term(x[i]) over n numbers, in the same order on every instruction set: number i is added to
// sum i % kSums, and the sums are added in pairs. What is beyond the numbers adds nothing.
template <typename Term>
inline float sum_in_order(const float* x, int64_t n, Term term) {
  constexpr int kSums = 32;
  static_assert(kSums % kLanes == 0);
  Floats sums[kSums / kLanes];
  for (Floats& sum : sums) sum = broadcast(0.0f);
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int s = 0; s < kSums / kLanes; ++s) sums[s] = add(sums[s], term(load(x + i + s * kLanes)));
  }
  float all[kSums];
  for (int s = 0; s < kSums / kLanes; ++s) store(all + s * kLanes, sums[s]);
  for (int64_t first = i; i < n; i += kLanes) {
    float rest[kLanes];
    const int64_t n_rest = n - i < kLanes ? n - i : kLanes;
    store(rest, term(load_tail(x + i, n_rest)));
    for (int64_t k = 0; k < n_rest; ++k) all[i - first + k] += rest[k];
  }
  for (int half = kSums / 2; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) all[s] += all[s + half];
  }
  return all[0];
}

inline void layer_norm(const LayerNormArgs& args, const float* x, int64_t n, float* y) {
  const auto count = static_cast<float>(n);
  const Floats mean = broadcast(sum_in_order(x, n, [](Floats v) { return v; }) / count);
  const auto square = [&](Floats v) { return mul(sub(v, mean), sub(v, mean)); };
  const float variance = sum_in_order(x, n, square) / count;
  const Floats factor = broadcast(1.0f / sqrtf(variance + args.eps));
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t n_here = n - i < kLanes ? n - i : kLanes;
    const auto part = [&](const float* p) {
      return n_here == kLanes ? load(p + i) : load_tail(p + i, n_here);
    };
    Floats v = mul(sub(part(x), mean), factor);
    if (args.weight != nullptr) v = mul(v, part(args.weight));
    if (args.bias != nullptr) v = add(v, part(args.bias));
    if (n_here == kLanes) {
      store(y + i, v);
    } else {
      store_tail(y + i, v, n_here);
    }
  }
}

// The integers of ggml's Q8_0 as its x86 code computes them: the largest becomes +-127,
// the others are rounded to nearest, ties to even. (Its ARM code multiplies with the
// reciprocal of the rounded scale instead, and now and then differs by 1.)
//
// Numbers that are not finite make a scale that is not, or are lost; integers always
// stay within +-127.
inline void quantize_block(const float* x, int /*place*/, ActivationBlock& block) {
  constexpr int kVectors = kActivationBlock / kLanes;
  Floats v[kVectors];
  Floats largest = broadcast(0.0f);
  for (int i = 0; i < kVectors; ++i) {
    v[i] = load(x + i * kLanes);
    largest = max(abs(v[i]), largest);
  }
  const float amax = reduce_max(largest);
  // Below 2^-120 the factor would overflow; the scale is 0 long before.
  const Floats factor = broadcast(amax >= 0x1p-120f ? 127.0f / amax : 0.0f);

  Ints sums[2] = {broadcast_int(0), broadcast_int(0)};
  for (int i = 0; i < kVectors; ++i) {
    const Floats limited = min(max(mul(v[i], factor), broadcast(-127.0f)), broadcast(127.0f));
    const Ints q = round_to_ints(limited);
    store_int8(block.q + i * kLanes, q);
    Ints& sum = sums[i * kLanes / (kActivationBlock / 2)];
    sum = add(sum, q);
  }
  block.first_half_sum = reduce_add(sums[0]);
  block.sum = block.first_half_sum + reduce_add(sums[1]);
  block.scale = round_to_half(amax / 127.0f);
  block.scaled_sum = block.scale * static_cast<float>(block.sum);
}

inline void quantize_block(const float* x, int place, ActivationPair& pair) {
  ActivationBlock block;
  quantize_block(x, 0, block);
  for (int i = 0; i < 4; ++i) memcpy(pair.q[i][place], block.q + 8 * i, 8);
  for (int i = 2 * place; i < 2 * place + 2; ++i) {
    pair.scale[i] = block.scale;
    pair.scaled_sum[i] = block.scaled_sum;
    pair.sum[i] = block.sum;
  }
}

template <typename Block>
void quantize(const float* x, int64_t n, int place, std::byte* blocks) {
  auto* to = reinterpret_cast<Block*>(blocks);
  for (int64_t i = 0; i < n / kActivationBlock; ++i) {
    quantize_block(x + i * kActivationBlock, place, to[i]);
  }
}

// Gates: what they make of themselves, and of the numbers that they multiply. The order of the arguments
// of min and max keeps NaNs.
struct GateOfPlainFactors {
  static Floats factor(Floats up) { return up; }
};

// x / (1 + exp(-x))
struct Silu : GateOfPlainFactors {
  static Floats open(Floats x) {
    const Floats one = broadcast(1.0f);
    return div(x, add(one, exp(sub(broadcast(0.0f), x))));
  }
};

// The usual approximation, x / 2 * (1 + tanh(y)) with y = sqrt(2 / pi) * (x + 0.044715 * x^3).
// (1 + tanh(y)) / 2 is 1 / (1 + exp(-2 * y)), which loses no digits where tanh is near -1.
struct Gelu : GateOfPlainFactors {
  static Floats open(Floats x) {
    const Floats one = broadcast(1.0f);
    const Floats cubic = fma(mul(x, x), broadcast(0.044715f), one);
    const Floats minus_2y = mul(mul(x, broadcast(-2.0f * 0.79788456080286535588f)), cubic);
    return div(x, add(one, exp(minus_2y)));
  }
};

// The square of what is positive.
struct ReluSquared : GateOfPlainFactors {
  static Floats open(Floats x) {
    const Floats positive = max(broadcast(0.0f), x);
    return mul(positive, positive);
  }
};

struct LimitedSwish {
  static Floats open(Floats x) {
    const Floats limited = min(broadcast(kGateLimit), x);
    return div(limited, add(broadcast(1.0f), exp(mul(limited, broadcast(-kSwishSlope)))));
  }
  static Floats factor(Floats up) {
    const Floats limited = max(broadcast(-kGateLimit), min(broadcast(kGateLimit), up));
    return add(limited, broadcast(1.0f));
  }
};

template <typename Gate>
inline void gate_with(const float* gate, const float* up, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats opened = Gate::open(load(gate + i));
    store(y + i, up == nullptr ? opened : mul(opened, Gate::factor(load(up + i))));
  }
  if (i == n) return;
  const Floats opened = Gate::open(load_tail(gate + i, n - i));
  store_tail(y + i, up == nullptr ? opened : mul(opened, Gate::factor(load_tail(up + i, n - i))), n - i);
}

inline void gate(GateActivation activation, const float* gate, const float* up, int64_t n, float* y) {
  switch (activation) {
    case GateActivation::kSilu: return gate_with<Silu>(gate, up, n, y);
    case GateActivation::kGelu: return gate_with<Gelu>(gate, up, n, y);
    case GateActivation::kReluSquared: return gate_with<ReluSquared>(gate, up, n, y);
    case GateActivation::kLimitedSwish: return gate_with<LimitedSwish>(gate, up, n, y);
  }
}

}  // namespace forerun::kernels::FORERUN_ISA
