// Scores and softmax of attention: how parts of a row's cells are joined, by the chunk kernel and by the
// merging one.
//
// Both must agree bit for bit, so it is written with intrinsics that the compiler does not contract.
#pragma once

#include "model/cuda/attention.h"
#include "model/cuda/ptx.cuh"

namespace forerun::cuda {

constexpr float kLog2E = 1.44269504088896341f;

// Scores in units of log2(e).
struct Scores {
  float factor;
  float cap_factor = 0.0f;  // 0: no soft cap

  explicit Scores(const AttentionShape& shape) : factor(shape.scale * kLog2E) {
    if (shape.soft_cap > 0.0f) {
      cap_factor = shape.soft_cap * kLog2E;
      factor = 2.0f * factor / shape.soft_cap;
    }
  }
  __device__ __forceinline__ float of(float product) const {
    const float x = __fmul_rn(product, factor);
    if (cap_factor == 0.0f) return x;
    // tanh(y) = 1 - 2 / (1 + exp(2 y)); x is 2 y log2(e).
    const float tanh = __fsub_rn(1.0f, __fdiv_rn(2.0f, __fadd_rn(1.0f, ptx::exp2(x))));
    return __fmul_rn(tanh, cap_factor);
  }
};

// How values join those before them.
struct Joint {
  bool keeps;  // nothing joins
  bool takes;  // nothing was there
  float before, now;

  __device__ __forceinline__ float value(float earlier, float value) const {
    const float joined = __fmaf_rn(value, now, __fmul_rn(earlier, before));
    return keeps ? earlier : takes ? value : joined;
  }
};

// Softmax of what has been joined so far. Weights are exp2(score - max); sum 0: nothing yet.
struct Running {
  float max = 0.0f, sum = 0.0f;

  __device__ __forceinline__ Joint join(float other_max, float other_sum) {
    Joint joint;
    joint.keeps = other_sum == 0.0f;
    joint.takes = sum == 0.0f;
    const float difference = __fsub_rn(other_max, max);
    const float smaller = ptx::exp2(-fabsf(difference));
    joint.now = difference >= 0.0f ? 1.0f : smaller;
    joint.before = difference >= 0.0f ? smaller : 1.0f;
    sum = joint.value(sum, other_sum);
    max = joint.keeps ? max : joint.takes ? other_max : fmaxf(max, other_max);
    return joint;
  }
};

}  // namespace forerun::cuda
