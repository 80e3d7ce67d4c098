#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/test_numbers.h"
#include "model/kernels/activation_fixtures.h"
#include "model/kernels/kernels.h"
#include "support/odd_floats.h"

namespace forerun {
namespace {

constexpr GateActivation kGateActivations[] = {GateActivation::kSilu, GateActivation::kGelu,
                                               GateActivation::kReluSquared,
                                               GateActivation::kLimitedSwish};

class RowsTest : public testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels() const { return *GetParam(); }

  std::vector<float> random(int64_t n, float deviation = 1.0f) {
    std::vector<float> x(n);
    fill_normally(x, rng_(), 0.0f, deviation);
    return x;
  }
  std::vector<float> gated(GateActivation activation, const std::vector<float>& gate,
                           const std::vector<float>& up) const {
    std::vector<float> y(gate.size());
    kernels().gate(activation, gate.data(), up.data(), static_cast<int64_t>(gate.size()), y.data());
    return y;
  }
  std::vector<ActivationBlock> quantized(const std::vector<float>& x, int place = 0) const {
    std::vector<std::byte> bundle(x.size() / kActivationBlock * kernels().activation_bytes);
    kernels().quantize(x.data(), static_cast<int64_t>(x.size()), place, bundle.data());
    return blocks_of(bundle, place);
  }
  std::vector<ActivationBlock> blocks_of(const std::vector<std::byte>& bundle, int place) const {
    std::vector<ActivationBlock> blocks;
    for (size_t at = 0; at < bundle.size(); at += kernels().activation_bytes) {
      blocks.push_back(get_block(kernels(), bundle.data() + at, place));
    }
    return blocks;
  }

  std::mt19937 rng_{7};
};

TEST_P(RowsTest, RmsNormIsNearTheExactValue) {
  constexpr double kBound = 2e-6;  // relative; the sum of squares is the main part of it
  for (const int64_t n : {1, 7, 8, 63, 64, 65, 576, 1000, 8192}) {
    for (const bool weighted : {false, true}) {
      const std::vector<float> x = random(n, 3.0f), weight = random(n);
      const float eps = 1e-5f;
      std::vector<float> y(n);
      kernels().rms_norm(x.data(), weighted ? weight.data() : nullptr, eps, n, y.data());
      double squares = 0.0;
      for (const float v : x) squares += static_cast<double>(v) * v;
      const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
      for (int64_t i = 0; i < n; ++i) {
        const double exact = x[i] * factor * (weighted ? weight[i] : 1.0);
        ASSERT_NEAR(y[i], exact, kBound * std::abs(exact)) << "element " << i << " of " << n;
      }
    }
  }
}

TEST_P(RowsTest, RmsNormWorksInPlace) {
  std::vector<float> x = random(100);
  const std::vector<float> weight = random(100);
  std::vector<float> y(100);
  kernels().rms_norm(x.data(), weight.data(), 1e-6f, 100, y.data());
  kernels().rms_norm(x.data(), weight.data(), 1e-6f, 100, x.data());
  EXPECT_EQ(x, y);
}

TEST_P(RowsTest, LayerNormIsNearTheExactValue) {
  for (const int64_t n : {1, 7, 8, 31, 32, 33, 63, 576, 1000, 8192}) {
    for (const bool weighted : {false, true}) {
      std::vector<float> x = random(n, 3.0f);
      for (float& v : x) v += 5.0f;  // a mean that shows
      const std::vector<float> weight = random(n), bias = random(n);
      const float eps = 1e-5f;
      std::vector<float> y(n);
      kernels().layer_norm({.weight = weighted ? weight.data() : nullptr,
                            .bias = weighted ? bias.data() : nullptr,
                            .eps = eps},
                           x.data(), n, y.data());
      double mean = 0.0, squares = 0.0;
      for (const float v : x) mean += v / static_cast<double>(n);
      for (const float v : x) squares += (v - mean) * (v - mean);
      const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
      for (int64_t i = 0; i < n; ++i) {
        const double exact = (x[i] - mean) * factor * (weighted ? weight[i] : 1.0);
        const double moved = exact + (weighted ? bias[i] : 0.0);
        // The mean is rounded; of a single number nothing but that is left.
        const double bound = 3e-6 * (std::abs(exact) + std::abs(weighted ? weight[i] : 1.0));
        ASSERT_NEAR(y[i], moved, bound + 1e-7 * std::abs(moved)) << "element " << i << " of " << n;
      }
    }
  }
}

TEST_P(RowsTest, LayerNormIsTheSameBitsInEverySetAndInPlace) {
  const KernelSet& portable = *available_kernels().back();
  for (int64_t n = 1; n <= 200; ++n) {
    std::vector<float> x = random(n, 3.0f);
    const std::vector<float> weight = random(n), bias = random(n);
    const LayerNormArgs args{.weight = weight.data(), .bias = bias.data(), .eps = 1e-6f};
    std::vector<float> expected(n);
    portable.layer_norm(args, x.data(), n, expected.data());
    kernels().layer_norm(args, x.data(), n, x.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(expected[i]))
          << "element " << i << " of " << n;
    }
  }
}

// The definition, in scalar code.
void check_block(const float* x, const ActivationBlock& block) {
  float largest = 0.0f;
  for (int i = 0; i < kActivationBlock; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = ggml_fp16_to_fp32(ggml_fp32_to_fp16(largest / 127.0f));
  const float factor = largest == 0.0f ? 0.0f : 127.0f / largest;
  int sum = 0, first_half_sum = 0;
  for (int i = 0; i < kActivationBlock; ++i) {
    ASSERT_EQ(block.q[i], static_cast<int>(std::nearbyint(x[i] * factor))) << "x = " << x[i];
    sum += block.q[i];
    if (i < 16) first_half_sum += block.q[i];
  }
  EXPECT_EQ(block.scale, scale);
  EXPECT_EQ(block.sum, sum);
  EXPECT_EQ(block.first_half_sum, first_half_sum);
  EXPECT_EQ(block.scaled_sum, scale * static_cast<float>(sum));
}

// Random blocks of all magnitudes, ties and nearly so, one large number among small ones, zeros.
std::vector<float> blocks_to_quantize(std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int exponent = -115; exponent <= 125; ++exponent) {
    for (int i = 0; i < kActivationBlock; ++i) x.push_back(std::ldexp(normal(rng), exponent));
  }
  for (int block = 0; block < 200; ++block) {
    for (int i = 0; i < kActivationBlock; ++i) x.push_back(normal(rng));
  }
  // Between two integers, where every rounding of the factor shows.
  for (int block = 0; block < 200; ++block) {
    const float largest = std::abs(normal(rng));
    for (int i = 0; i < kActivationBlock; ++i) {
      x.push_back((3.5f * static_cast<float>(i) - 60.0f) * largest / 127.0f);
    }
    x.back() = largest;
  }
  for (int i = 0; i < kActivationBlock; ++i) x.push_back(static_cast<float>(i) * 0.5f - 8.0f);
  x.back() = 127.0f;
  for (int i = 0; i < kActivationBlock; ++i) x.push_back(i == 20 ? -1e4f : 1e-4f * normal(rng));
  for (int i = 0; i < kActivationBlock; ++i) x.push_back(i % 2 == 0 ? 0.0f : -0.0f);
  for (int i = 0; i < kActivationBlock; ++i)
    x.push_back(i == 3 ? std::numeric_limits<float>::max() : 1.0f);
  return x;
}

TEST_P(RowsTest, QuantizesAsDefined) {
  const std::vector<float> x = blocks_to_quantize(rng_);
  for (int place = 0; place < kernels().rows_together; ++place) {
    const std::vector<ActivationBlock> blocks = quantized(x, place);
    for (size_t b = 0; b < blocks.size(); ++b) {
      check_block(x.data() + b * kActivationBlock, blocks[b]);
      if (HasFatalFailure()) FAIL() << "block " << b << " of row " << place;
    }
  }
}

// Every byte of a bundle's blocks belongs to one row, and no other row's quantising changes it.
TEST_P(RowsTest, QuantizesEveryRowOfABundleByItself) {
  const int n_rows = kernels().rows_together;
  std::vector<std::vector<float>> rows;
  for (int r = 0; r < n_rows; ++r) rows.push_back(random(3 * kActivationBlock));
  for (const std::byte rest : {std::byte{0}, std::byte{0xFF}}) {
    std::vector<std::byte> bundle(3 * kernels().activation_bytes, rest);
    for (int r = n_rows - 1; r >= 0; --r) {
      const std::vector<std::byte> before = bundle;
      kernels().quantize(rows[r].data(), 3 * kActivationBlock, r, bundle.data());
      std::vector<std::byte> expected = before;
      for (int b = 0; b < 3; ++b) {
        put_block(kernels(), quantized(rows[r], r)[b], r,
                  expected.data() + b * kernels().activation_bytes);
      }
      EXPECT_EQ(bundle, expected) << "row " << r;
    }
    for (int r = 0; r < n_rows; ++r) {
      const std::vector<ActivationBlock> blocks = blocks_of(bundle, r);
      for (int b = 0; b < 3; ++b) check_block(rows[r].data() + b * kActivationBlock, blocks[b]);
    }
  }
}

TEST_P(RowsTest, QuantizesAsGgmlDoes) {
  struct Q8Block {
    ggml_fp16_t scale;
    int8_t q[kActivationBlock];
  };
  ggml_cpu_init();
  const std::vector<float> x = blocks_to_quantize(rng_);
  const std::vector<ActivationBlock> blocks = quantized(x);
  std::vector<Q8Block> theirs(blocks.size());
  ASSERT_EQ(ggml_row_size(GGML_TYPE_Q8_0, static_cast<int64_t>(x.size())),
            theirs.size() * sizeof(Q8Block));
  ggml_get_type_traits_cpu(GGML_TYPE_Q8_0)
      ->from_float(x.data(), theirs.data(), static_cast<int64_t>(x.size()));
  // Elsewhere ggml rounds the factor differently.
  const int most = ggml_cpu_has_avx() ? 0 : 1;
  for (size_t b = 0; b < blocks.size(); ++b) {
    ASSERT_EQ(blocks[b].scale, ggml_fp16_to_fp32(theirs[b].scale)) << "block " << b;
    for (int i = 0; i < kActivationBlock; ++i) {
      ASSERT_LE(std::abs(blocks[b].q[i] - theirs[b].q[i]), most) << "block " << b << ", " << i;
    }
  }
}

// Where 127 / largest is beyond all floats, the scale is 0; ggml's integers are garbage
// there.
TEST_P(RowsTest, QuantizesTheTiniestNumbersToZero) {
  std::vector<float> x(kActivationBlock, 1e-40f);
  x[5] = -1e-37f;
  const ActivationBlock block = quantized(x)[0];
  EXPECT_EQ(block.scale, 0.0f);
  EXPECT_EQ(block.sum, 0);
  EXPECT_TRUE(std::all_of(std::begin(block.q), std::end(block.q), [](int8_t q) { return q == 0; }));
}

TEST_P(RowsTest, QuantizesWhatIsNotFiniteToSomething) {
  for (const float odd : {kInf, -kInf, kNan}) {
    for (int i = 0; i < kActivationBlock; ++i) {
      std::vector<float> x = random(2 * kActivationBlock);
      const ActivationBlock second = quantized(x)[1];
      x[i] = odd;
      const std::vector<ActivationBlock> blocks = quantized(x);
      for (const int8_t q : blocks[0].q) EXPECT_GE(q, -127);
      if (!std::isnan(odd)) {
        EXPECT_FALSE(std::isfinite(blocks[0].scale));
      }
      EXPECT_TRUE(std::equal(std::begin(second.q), std::end(second.q), std::begin(blocks[1].q)));
    }
  }
}

TEST_P(RowsTest, SiluIsNearTheExactValue) {
  std::vector<float> gate = random(2001, 4.0f);
  for (float g = -120.0f; g <= 120.0f; g += 0.37f) gate.push_back(g);
  const std::vector<float> up = random(static_cast<int64_t>(gate.size()));
  const std::vector<float> y = gated(GateActivation::kSilu, gate, up);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double exact = gate[i] / (1.0 + std::exp(-static_cast<double>(gate[i]))) * up[i];
    // Below -88 the result is 0.
    ASSERT_NEAR(y[i], exact, 5e-7 * std::abs(exact) + 1e-36 * std::abs(up[i])) << "gate " << gate[i];
  }
}

TEST_P(RowsTest, GeluIsNearTheExactValue) {
  std::vector<float> gate = random(2001, 2.0f);
  for (float g = -30.0f; g <= 30.0f; g += 0.093f) gate.push_back(g);
  const std::vector<float> up = random(static_cast<int64_t>(gate.size()));
  const std::vector<float> y = gated(GateActivation::kGelu, gate, up);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const double argument = std::sqrt(2.0 / M_PI) * g * (1.0 + 0.044715 * g * g);
    const double exact = g / (1.0 + std::exp(-2.0 * argument)) * up[i];
    // The argument of exp() is rounded: relative errors grow with it.
    const double bound = (5e-7 + 4e-7 * std::abs(argument)) * std::abs(exact);
    ASSERT_NEAR(y[i], exact, bound + 1e-36 * std::abs(up[i])) << "gate " << g;
  }
}

TEST_P(RowsTest, SquaresWhatIsPositive) {
  const std::vector<float> gate = {0.0f, -0.0f, 3.0f, -3.0f, 0.1f, -kInf, 1e30f, kInf, kNan, -1e-40f};
  const std::vector<float> y =
      gated(GateActivation::kReluSquared, gate, std::vector<float>(gate.size(), 1.0f));
  const std::vector<float> expected = {0.0f, 0.0f, 9.0f, 0.0f, 0.1f * 0.1f, 0.0f, kInf, kInf};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[i], expected[i]) << gate[i];
  EXPECT_TRUE(std::isnan(y[8]));
  EXPECT_EQ(y[9], 0.0f);
}

TEST_P(RowsTest, LimitedSwishIsNearTheExactValue) {
  std::vector<float> gate = random(2001, 5.0f);
  for (float g = -60.0f; g <= 60.0f; g += 0.37f) gate.push_back(g);
  const std::vector<float> up = random(static_cast<int64_t>(gate.size()), 5.0f);
  const std::vector<float> y = gated(GateActivation::kLimitedSwish, gate, up);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(gate[i], 7.0f), factor = std::clamp(up[i], -7.0f, 7.0f) + 1.0;
    const double exact = g / (1.0 + std::exp(-1.702 * g)) * factor;
    // The argument of exp() is rounded: relative errors grow with it.
    const double bound = (1e-6 + 7e-7 * std::abs(g)) * std::abs(exact);
    ASSERT_NEAR(y[i], exact, bound + 1e-36 * std::abs(factor)) << "gate " << gate[i] << ", up " << up[i];
  }
  EXPECT_TRUE(std::isnan(gated(GateActivation::kLimitedSwish, {kNan}, {1.0f})[0]));
  EXPECT_TRUE(std::isnan(gated(GateActivation::kLimitedSwish, {1.0f}, {kNan})[0]));
}

// Without a factor a gate is what it is with factors of 1.
TEST_P(RowsTest, GatesNeedNoFactors) {
  const std::vector<float> gate = random(67, 3.0f), ones(67, 1.0f);
  for (const GateActivation activation : kGateActivations) {
    // Of ups the last one makes 1 more.
    const bool adds_one = activation == GateActivation::kLimitedSwish;
    std::vector<float> y(67);
    kernels().gate(activation, gate.data(), nullptr, 67, y.data());
    EXPECT_EQ(y, gated(activation, gate, adds_one ? std::vector<float>(67) : ones));
  }
}

TEST_P(RowsTest, GatesAreExactAtTheirEnds) {
  const std::vector<float> gate = {0.0f, -0.0f, 1e4f, -1e4f, 3e38f, -3e38f, kNan};
  const std::vector<float> up(gate.size(), 1.0f);
  for (const GateActivation activation : {GateActivation::kSilu, GateActivation::kGelu}) {
    const std::vector<float> y = gated(activation, gate, up);
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 0.0f);
    EXPECT_EQ(y[2], 1e4f);
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[4], 3e38f);
    EXPECT_EQ(y[5], 0.0f);
    EXPECT_TRUE(std::isnan(y[6]));
  }
}

// An element's bits do not depend on the length of the row or on its place in it.
TEST_P(RowsTest, GatesAreTheSameBitsAnywhere) {
  const std::vector<float> gate = random(67, 3.0f), up = random(67);
  for (const GateActivation activation : kGateActivations) {
    const std::vector<float> whole = gated(activation, gate, up);
    for (int64_t n = 1; n <= 67; ++n) {
      const int64_t begin = 67 - n;
      std::vector<float> y(n);
      kernels().gate(activation, gate.data() + begin, up.data() + begin, n, y.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(whole[begin + i]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RowsTest, testing::ValuesIn(available_kernels()),
                         [](const auto& set) { return std::string(set.param->name); });

}  // namespace
}  // namespace forerun
