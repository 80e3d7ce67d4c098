// Products with the matrix instruction of ARM64's i8mm: SMMLA multiplies 8 inputs of two
// rows with those of two outputs, which is twice what a dot product does.
//
// Rows lie together in pairs (ActivationPair). Tiles are interleaved 8 inputs at a time
// (kInputsTogether), so that a register has 8 inputs of outputs 2p and 2p + 1. The sums of
// a pair of rows and a pair of outputs are one register:
//
//   row 0, output 2p | row 0, output 2p + 1 | row 1, output 2p | row 1, output 2p + 1
//
// What is added to them, and in which order, is what products_impl.h says. Nothing crosses
// lanes, so the second row of the last pair may be missing and its numbers be anything. It
// would not save anything to multiply such a row by itself beside pairs: per 32 inputs and 8
// outputs that takes 16 SDOT, 2 ADDP, 4 FMLA, 2 FMUL and 4 loads that duplicate; as half
// of a pair it takes 16 SMMLA and 8 FMLA.
#pragma once

#include <arm_neon.h>

#include "model/kernels/products_impl.h"

namespace forerun::kernels::FORERUN_ISA {

static_assert(kLanes == 8 && kInputsTogether == 8);
constexpr int kOutputPairs = kLanes / 2;

inline const ActivationPair& pair_of(const RowGroup& x, int pair, int step) {
  return reinterpret_cast<const ActivationPair*>(x.data + pair * x.stride)[step];
}

// The two numbers of a pair of outputs, twice.
template <int kPair>
inline float32x4_t of_outputs(Floats a) {
  const float64x2_t both = vreinterpretq_f64_f32(kPair < 2 ? a.lo : a.hi);
  return vreinterpretq_f32_f64(vdupq_laneq_f64(both, kPair % 2));
}
// The weights of a pair of outputs, of 8 inputs, which are two vectors.
template <int kPair>
inline int8x16_t of_outputs(const Bytes* w) {
  return vreinterpretq_s8_u8(kPair % 2 == 0 ? w[kPair / 2].lo : w[kPair / 2].hi);
}

// Loads stay where they are written: kept in registers from some outputs to the next,
// activations would not fit.
inline void keep_loads_apart() {
  asm volatile("" ::: "memory");
}

constexpr int32x4_t kStart = {kSumBaseBits, kSumBaseBits, kSumBaseBits, kSumBaseBits};

// Where the sums of integers of a step begin.
template <typename Format>
inline int32x4_t start_of(const ActivationPair& x) {
  const int32x4_t start = load_again(kStart);
  if constexpr (Format::kOffset == 0) return start;
  return vmlsq_n_s32(start, vld1q_s32(x.sum), Format::kOffset);
}

// Four outputs, pairs 2 * kQuad and 2 * kQuad + 1, of a step: what is read of the rows is
// used for both.
template <typename Format, int kPairs, int kStep, int kQuad>
__attribute__((always_inline)) inline void add_four_outputs(const typename Format::Packed& packed,
                                                            int part, const RowGroup& x,
                                                            const Floats (&scales)[2], Floats minimum,
                                                            float32x4_t (&sums)[kPairs][kOutputPairs]) {
  constexpr bool kWholeStep = Format::kScaleGroup == kActivationBlock;
  static_assert(kWholeStep || Format::kOffset == 0, "pairs have no sums of half a step");
  constexpr int kA = 2 * kQuad, kB = kA + 1;
  keep_loads_apart();
  Bytes first[4], second[4];
  Format::template unpack<kStep, 0>(packed, part, first);
  Format::template unpack<kStep, 1>(packed, part, second);
  const int8x16_t a[4] = {of_outputs<kA>(first), of_outputs<kA>(first + 2), of_outputs<kA>(second),
                          of_outputs<kA>(second + 2)};
  const int8x16_t b[4] = {of_outputs<kB>(first), of_outputs<kB>(first + 2), of_outputs<kB>(second),
                          of_outputs<kB>(second + 2)};
  const float32x4_t minus_base = vdupq_n_f32(-kSumBase);
  float32x4_t bases[2][2];
  for (int half = kWholeStep ? 1 : 0; half < 2; ++half) {
    bases[half][0] = vmulq_f32(of_outputs<kA>(scales[half]), minus_base);
    bases[half][1] = vmulq_f32(of_outputs<kB>(scales[half]), minus_base);
  }
  // With 6 rows and such formats, copies of these registers take a fifth of the time.
  constexpr bool kLoadsBases = kPairs == 3 && Format::kHasMinimum && Format::kPartSteps == 1;
  const auto base = [&](int half, int i) {
    return kLoadsBases ? load_again(bases[half][i]) : bases[half][i];
  };
#pragma GCC unroll 4
  for (int r = 0; r < kPairs; ++r) {
    const ActivationPair& pair = pair_of(x, r, kStep);
    float32x4_t& sum_a = sums[r][kA];
    float32x4_t& sum_b = sums[r][kB];
    int32x4_t dot_a = start_of<Format>(pair);
    int32x4_t dot_b = Format::kOffset == 0 ? start_of<Format>(pair) : dot_a;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int half = i / 2;
      if (i == 2 && !kWholeStep) {
        dot_a = start_of<Format>(pair);
        dot_b = start_of<Format>(pair);
      }
      const int8x16_t q = vld1q_s8(pair.q[i][0]);
      dot_a = vmmlaq_s32(dot_a, q, a[i]);
      dot_b = vmmlaq_s32(dot_b, q, b[i]);
      if (i == 3 || (i == 1 && !kWholeStep)) {
        const float32x4_t scaled_a =
            vfmaq_f32(base(half, 0), vreinterpretq_f32_s32(dot_a), of_outputs<kA>(scales[half]));
        const float32x4_t scaled_b =
            vfmaq_f32(base(half, 1), vreinterpretq_f32_s32(dot_b), of_outputs<kB>(scales[half]));
        const float32x4_t x_scale = vld1q_f32(pair.scale);
        sum_a = vfmaq_f32(sum_a, scaled_a, x_scale);
        sum_b = vfmaq_f32(sum_b, scaled_b, x_scale);
      }
    }
    if constexpr (Format::kHasMinimum) {
      const float32x4_t x_sum = vld1q_f32(pair.scaled_sum);
      sum_a = vfmaq_f32(sum_a, of_outputs<kA>(minimum), x_sum);
      sum_b = vfmaq_f32(sum_b, of_outputs<kB>(minimum), x_sum);
    }
  }
}

template <typename Format, int kPairs, int kStep = 0>
__attribute__((always_inline)) inline void add_steps_of_pairs(
    const typename Format::Packed& packed, int part, const RowGroup& x,
    float32x4_t (&sums)[kPairs][kOutputPairs]) {
  const Floats scales[2] = {Format::template scale<kStep, 0>(packed, part),
                            Format::template scale<kStep, 1>(packed, part)};
  Floats minimum = scales[0];
  if constexpr (Format::kHasMinimum) minimum = Format::template minimum<kStep>(packed, part);
  add_four_outputs<Format, kPairs, kStep, 0>(packed, part, x, scales, minimum, sums);
  add_four_outputs<Format, kPairs, kStep, 1>(packed, part, x, scales, minimum, sums);
  if constexpr (kStep + 1 < Format::kPartSteps) {
    add_steps_of_pairs<Format, kPairs, kStep + 1>(packed, part, x, sums);
  }
}

// One row, the first of its pair: dot products of 4 inputs each, two for every output, which
// are added in the end. The dots of a pair of outputs are one register.

template <typename Format>
inline void start_dots_of_one(int32_t x_sum, int32x4_t (&dots)[kOutputPairs]) {
  const int64_t start = static_cast<uint32_t>(kSumBaseBits - Format::kOffset * x_sum);
  for (int32x4_t& dot : dots) dot = vreinterpretq_s32_s64(vdupq_n_s64(start));
}

// 16 weights of each output.
template <typename Format, int kStep, int kHalf>
inline void dot_half_of_one(const typename Format::Packed& packed, int part, const ActivationPair& x,
                            int32x4_t (&dots)[kOutputPairs]) {
  Bytes w[4];
  Format::template unpack<kStep, kHalf>(packed, part, w);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    int64_t inputs;
    memcpy(&inputs, x.q[2 * kHalf + i][0], sizeof(inputs));
    const int8x16_t q = vreinterpretq_s8_s64(vdupq_n_s64(inputs));
    dots[0] = vdotq_s32(dots[0], of_outputs<0>(w + 2 * i), q);
    dots[1] = vdotq_s32(dots[1], of_outputs<1>(w + 2 * i), q);
    dots[2] = vdotq_s32(dots[2], of_outputs<2>(w + 2 * i), q);
    dots[3] = vdotq_s32(dots[3], of_outputs<3>(w + 2 * i), q);
  }
}

inline Floats add_dots_of_one(const int32x4_t (&dots)[kOutputPairs], Floats scale, float x_scale,
                              Floats sum) {
  const Ints together{vpaddq_s32(dots[0], dots[1]), vpaddq_s32(dots[2], dots[3])};
  const Floats scaled = fma(as_floats(together), scale, mul(scale, broadcast(-kSumBase)));
  return fma(scaled, broadcast(x_scale), sum);
}

template <typename Format, int kStep = 0>
__attribute__((always_inline)) inline Floats add_steps_of_one(const typename Format::Packed& packed,
                                                              int part, const RowGroup& row,
                                                              Floats sum) {
  const ActivationPair& x = pair_of(row, 0, kStep);
  int32x4_t dots[kOutputPairs];
  start_dots_of_one<Format>(x.sum[0], dots);
  dot_half_of_one<Format, kStep, 0>(packed, part, x, dots);
  if constexpr (Format::kScaleGroup == kHalfStep) {
    sum = add_dots_of_one(dots, Format::template scale<kStep, 0>(packed, part), x.scale[0], sum);
    start_dots_of_one<Format>(0, dots);
  }
  dot_half_of_one<Format, kStep, 1>(packed, part, x, dots);
  sum = add_dots_of_one(dots, Format::template scale<kStep, 1>(packed, part), x.scale[0], sum);
  if constexpr (Format::kHasMinimum) {
    sum = fma(Format::template minimum<kStep>(packed, part), broadcast(x.scaled_sum[0]), sum);
  }
  if constexpr (kStep + 1 < Format::kPartSteps) {
    return add_steps_of_one<Format, kStep + 1>(packed, part, row, sum);
  }
  return sum;
}

// Quantised weights times ActivationPairs.
template <typename Format>
struct PairProduct {
  using Block = ActivationPair;
  static constexpr Operand kOperand = Operand::kBlocks;
  static constexpr int kRowsTogether = Block::kRows;
  static constexpr int kParts = Format::kBlockSize / kActivationBlock / Format::kPartSteps;
  static constexpr size_t kPartOperandBytes = Format::kPartSteps * sizeof(Block);
  static constexpr int kMaxGroup = 8;
  static constexpr int kChains = 1;

  template <int kRows>
  static void multiply(const GroupArgs& args) {
    if constexpr (kRows == 1) {
      multiply_one(args);
    } else {
      multiply_pairs<(kRows + 1) / 2>(args, kRows);
    }
  }

 private:
  __attribute__((noinline)) static void multiply_one(GroupArgs args) {
    const auto* blocks = reinterpret_cast<const typename Format::Packed*>(args.tile);
    Floats sum[1];
    args.begin(sum);
    for (int64_t b = 0; b < args.n_blocks; ++b) {
#pragma GCC unroll 1
      for (int part = 0; part < kParts; ++part) {
        args.ahead.fetch(1);
        sum[0] = add_steps_of_one<Format>(blocks[b], part, args.x, sum[0]);
        args.x.data += kPartOperandBytes;
      }
    }
    if (!args.is_last) return args.wait(sum);
    store(args.y, sum[0]);
  }

  template <int kPairs>
  __attribute__((noinline)) static void multiply_pairs(GroupArgs args, int n_rows) {
    const auto* blocks = reinterpret_cast<const typename Format::Packed*>(args.tile);
    float32x4_t sums[kPairs][kOutputPairs];
#pragma GCC unroll 16
    for (int i = 0; i < kPairs * kOutputPairs; ++i) {
      sums[i / kOutputPairs][i % kOutputPairs] =
          args.is_first ? vdupq_n_f32(0.0f) : vld1q_f32(args.waiting + 4 * i);
    }
    for (int64_t b = 0; b < args.n_blocks; ++b) {
#pragma GCC unroll 1
      for (int part = 0; part < kParts; ++part) {
        args.ahead.fetch(1);
        add_steps_of_pairs<Format, kPairs>(blocks[b], part, args.x, sums);
        args.x.data += kPartOperandBytes;
      }
    }
    if (!args.is_last) {
#pragma GCC unroll 16
      for (int i = 0; i < kPairs * kOutputPairs; ++i) {
        vst1q_f32(args.waiting + 4 * i, sums[i / kOutputPairs][i % kOutputPairs]);
      }
      return;
    }
#pragma GCC unroll 4
    for (int r = 0; r < kPairs; ++r) {
      float* y = args.y + 2 * r * args.y_stride;
#pragma GCC unroll 4
      for (int p = 0; p < kOutputPairs; ++p) vst1_f32(y + 2 * p, vget_low_f32(sums[r][p]));
      if (2 * r + 1 == n_rows) break;
      y += args.y_stride;
#pragma GCC unroll 4
      for (int p = 0; p < kOutputPairs; ++p) vst1_f32(y + 2 * p, vget_high_f32(sums[r][p]));
    }
  }
};

}  // namespace forerun::kernels::FORERUN_ISA
