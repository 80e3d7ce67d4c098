// Scores and softmax of attention: how parts of a row's cells are joined, by the chunk kernel and by the
// merging one.
//
// Both must agree bit for bit, so it is written with intrinsics that the compiler does not contract.
#pragma once

#include "model/cuda/attention.h"
#include "model/cuda/halves.cuh"
#include "model/cuda/lanes.cuh"
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
    const float x = scaled(product);
    return is_capped() ? capped(x) : x;
  }
  // The same in two steps.
  __device__ __forceinline__ float scaled(float product) const { return __fmul_rn(product, factor); }
  __device__ __forceinline__ bool is_capped() const { return cap_factor != 0.0f; }
  __device__ __forceinline__ float capped(float x) const {
    // tanh(y) = 1 - 2 / (1 + exp(2 y)); x is 2 y log2(e).
    const float tanh = __fsub_rn(1.0f, __fdiv_rn(2.0f, __fadd_rn(1.0f, ptx::exp2(x))));
    return __fmul_rn(tanh, cap_factor);
  }
};

// How values join those before them: each is multiplied by one of the two. Where nothing joins, or
// nothing was there, these are 0 and 1: caches hold nothing infinite (halves.cuh), so that 0 times a
// value is 0.
struct Joint {
  float before, now;

  __device__ __forceinline__ float value(float earlier, float value) const {
    return __fmaf_rn(value, now, __fmul_rn(earlier, before));
  }
};

// Softmax of what has been joined so far. Weights are exp2(score - max); sum 0: nothing yet.
struct Running {
  float max = 0.0f, sum = 0.0f;

  __device__ __forceinline__ Joint join(float other_max, float other_sum) {
    const bool keeps = other_sum == 0.0f, takes = sum == 0.0f;
    const float difference = __fsub_rn(other_max, max);
    const float smaller = ptx::exp2(-fabsf(difference));
    const bool grows = difference >= 0.0f;
    const Joint joint{.before = keeps   ? 1.0f
                                : takes ? 0.0f
                                : grows ? smaller
                                        : 1.0f,
                      .now = keeps            ? 0.0f
                             : takes || grows ? 1.0f
                                              : smaller};
    sum = joint.value(sum, other_sum);
    max = keeps ? max : takes ? other_max : fmaxf(max, other_max);
    return joint;
  }
};

__device__ __forceinline__ __half2 two_weights(float first_score, float second_score, float largest) {
  return __floats2half2_rn(ptx::exp2(__fsub_rn(first_score, largest)),
                           ptx::exp2(__fsub_rn(second_score, largest)));
}

// The sum of a chunk's weights: their product with ones, which every way of computing chunks makes of
// the same operands, 16 positions after the other.
constexpr uint32_t kTwoOnes = 0x3c003c00;  // halves
__device__ __forceinline__ void add_weights(float (&sums)[4], const uint32_t (&weights)[4]) {
  ptx::mma_f16(sums, weights, kTwoOnes, kTwoOnes);
}

}  // namespace forerun::cuda
