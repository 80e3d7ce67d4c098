// Every operation of every instruction set this CPU has against plain scalar code, bit
// for bit where simd_portable.h promises it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/kernels/kernels.h"
#include "model/kernels/simd_ops.h"
#include "support/odd_floats.h"

namespace forerun::kernels {

// Defined by simd_ops.cpp, once per instruction set.
#define SET(name)            \
  namespace name {           \
  const SimdOps& simd_ops(); \
  }
FORERUN_COMPILED_SETS
#undef SET

namespace {

constexpr int kTrials = 2000;

using SimdOpsOf = const SimdOps& (*)();

SimdOpsOf ops_named(std::string_view of) {
#define SET(name) \
  if (of == #name) return name::simd_ops;
  FORERUN_COMPILED_SETS
#undef SET
  return nullptr;
}

class SimdTest : public testing::TestWithParam<const KernelSet*> {
 protected:
  // Numbers of all signs and exponents, with a few that are exact and tie.
  float any_float() {
    switch (pick(0, 3)) {
      case 0: return static_cast<float>(pick(-64, 64)) * 0.5f;
      case 1: return std::ldexp(static_cast<float>(pick(-0xFFFFFF, 0xFFFFFF)), pick(-140, 80));
      default: return std::uniform_real_distribution<float>(-8, 8)(random_);
    }
  }
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::vector<float> any_floats() {
    std::vector<float> floats(ops_.lanes);
    for (float& x : floats) x = any_float();
    return floats;
  }
  std::vector<int32_t> any_ints(int low, int high) {
    std::vector<int32_t> ints(ops_.lanes);
    for (int32_t& x : ints) x = pick(low, high);
    return ints;
  }
  std::vector<std::byte> any_bytes(size_t n, int low = 0, int high = 255) {
    std::vector<std::byte> bytes(n);
    for (std::byte& x : bytes) x = static_cast<std::byte>(pick(low, high));
    return bytes;
  }

  // `operation` in every lane is `expected`, to the bit.
  template <typename F>
  void expect_lanes(const char* what, SimdOps::Operation operation, F expected) {
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::vector<float> a = any_floats(), b = any_floats(), c = any_floats();
      std::vector<float> y(ops_.lanes);
      operation(a.data(), b.data(), c.data(), y.data());
      for (int i = 0; i < ops_.lanes; ++i) {
        expect_same(y[i], expected(a[i], b[i], c[i]),
                    testing::Message() << what << " of " << a[i] << ", " << b[i] << ", " << c[i]);
      }
    }
  }
  static void expect_same(float actual, float expected, const testing::Message& what) {
    if (std::isnan(expected) ? std::isnan(actual)
                             : std::bit_cast<uint32_t>(actual) == std::bit_cast<uint32_t>(expected)) {
      return;
    }
    ADD_FAILURE() << what << ": " << actual << " instead of " << expected;
  }

  const SimdOps& ops_ = ops_named(GetParam()->name)();
  std::mt19937 random_{20240611};
};

TEST_P(SimdTest, IsThatOfTheKernelSet) {
  EXPECT_STREQ(ops_.name, GetParam()->name);
  EXPECT_EQ(ops_.lanes, GetParam()->lanes);
  EXPECT_GT(ops_.max_rows, 0);
}

TEST_P(SimdTest, ArithmeticRoundsOnce) {
  expect_lanes("add", ops_.add, [](float a, float b, float) { return a + b; });
  expect_lanes("sub", ops_.sub, [](float a, float b, float) { return a - b; });
  expect_lanes("mul", ops_.mul, [](float a, float b, float) { return a * b; });
  expect_lanes("div", ops_.div, [](float a, float b, float) { return a / b; });
  expect_lanes("fma", ops_.fma, [](float a, float b, float c) { return std::fma(a, b, c); });
  expect_lanes("fma chain", ops_.fma_chain, [](float a, float b, float c) {
    for (int i = 0; i < 4; ++i) c = std::fma(a, b, c);
    return c;
  });
  expect_lanes("abs", ops_.abs, [](float a, float, float) { return std::fabs(a); });
}

TEST_P(SimdTest, FmaIsFusedWhereTheProductNearlyCancels) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<float> a = any_floats(), b = any_floats();
    std::vector<float> c(ops_.lanes), y(ops_.lanes);
    for (int i = 0; i < ops_.lanes; ++i) {
      // What is left of the product, half a unit in the last place, or a sum of which
      // the product is just beyond or on the middle between two floats.
      switch (pick(0, 2)) {
        case 0: c[i] = -(a[i] * b[i]); break;
        case 1: c[i] = std::ldexp(a[i] * b[i], pick(20, 60)); break;
        default: c[i] = std::ldexp(a[i] * b[i], -pick(20, 60)); break;
      }
    }
    ops_.fma(a.data(), b.data(), c.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      expect_same(y[i], std::fma(a[i], b[i], c[i]),
                  testing::Message() << "fma of " << a[i] << ", " << b[i] << ", " << c[i]);
    }
  }
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: a tie of floats that a tiny number breaks, too
  // tiny for a double.
  const float factor = 1 + 0x1p-12f;
  const std::vector<float> a(ops_.lanes, factor);
  std::vector<float> y(ops_.lanes);
  for (const float tiny : {0x1p-100f, -0x1p-100f, 0x0p0f, 0x1p-149f, -0x1p-149f}) {
    const std::vector<float> c(ops_.lanes, tiny);
    ops_.fma(a.data(), a.data(), c.data(), y.data());
    for (const float x : y) EXPECT_EQ(x, std::fma(factor, factor, tiny)) << tiny;
  }
}

TEST_P(SimdTest, InfinitiesAndNansPassThrough) {
  for (const float special : {kInf, -kInf, kNan}) {
    std::vector<float> a = any_floats(), b = any_floats(), c = any_floats(), y(ops_.lanes);
    a[0] = special;
    c[1] = special;
    a[2] = special, c[2] = -special;
    ops_.fma(a.data(), b.data(), c.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      expect_same(y[i], std::fma(a[i], b[i], c[i]), testing::Message() << "fma with " << special);
    }
  }
}

TEST_P(SimdTest, BroadcastFillsEveryLane) {
  std::vector<float> y(ops_.lanes);
  const float x = 1.25f;
  ops_.broadcast(&x, nullptr, nullptr, y.data());
  EXPECT_THAT(y, testing::Each(1.25f));
  std::vector<int32_t> n(ops_.lanes);
  ops_.broadcast_int(-70000, n.data());
  EXPECT_THAT(n, testing::Each(-70000));
}

TEST_P(SimdTest, ExtremesAreOfTheOperands) {
  const auto ordered = [&](SimdOps::Operation operation, bool largest) {
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::vector<float> a = any_floats(), b = any_floats();
      std::vector<float> y(ops_.lanes);
      operation(a.data(), b.data(), nullptr, y.data());
      for (int i = 0; i < ops_.lanes; ++i) {
        EXPECT_EQ(y[i], (a[i] > b[i]) == largest ? a[i] : b[i]) << a[i] << ", " << b[i];
      }
    }
  };
  ordered(ops_.max, true);
  ordered(ops_.min, false);

  std::vector<float> a(ops_.lanes, -kInf);
  EXPECT_EQ(ops_.reduce_max(a.data()), -kInf);
  for (int i = 0; i < ops_.lanes; ++i) {
    std::vector<float> one = any_floats();
    one[i] = 0x1p120f;
    EXPECT_EQ(ops_.reduce_max(one.data()), 0x1p120f) << i;
    a[i] = -3;
    EXPECT_EQ(ops_.reduce_max(a.data()), -3);
  }
}

TEST_P(SimdTest, SumsHaveEveryLaneOnce) {
  // Integers that a float holds exactly: any order gives the same sum.
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> floats(ops_.lanes);
    float float_sum = 0;
    for (float& x : floats) float_sum += x = static_cast<float>(pick(-60000, 60000));
    EXPECT_EQ(ops_.reduce_add(floats.data()), float_sum);
    const std::vector<int32_t> ints = any_ints(-100'000'000, 100'000'000);
    int32_t sum = 0;
    for (const int32_t x : ints) sum += x;
    EXPECT_EQ(ops_.reduce_add_ints(ints.data()), sum);
  }
}

TEST_P(SimdTest, TransposeSwapsRowsAndLanes) {
  const int n = ops_.lanes;
  std::vector<float> a(n * n), y(n * n);
  std::iota(a.begin(), a.end(), 1.0f);
  ops_.transpose(a.data(), y.data());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) EXPECT_EQ(y[i * n + j], a[j * n + i]) << i << ", " << j;
  }
}

TEST_P(SimdTest, FmaByOneOfFourNumbers) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<float> a = any_floats(), b = any_floats(), c = any_floats();
    std::vector<float> y(ops_.lanes);
    for (int k = 0; k < 4; ++k) {
      ops_.fma_by[k](a.data(), b.data(), c.data(), y.data());
      for (int i = 0; i < ops_.lanes; ++i) {
        expect_same(y[i], std::fma(a[i], b[k], c[i]),
                    testing::Message() << "fma of " << a[i] << ", " << b[k] << ", " << c[i]);
      }
    }
  }
}

TEST_P(SimdTest, ReadsEveryNumberOfSixteenBits) {
  std::vector<uint16_t> halves(ops_.lanes);
  std::vector<float> y(ops_.lanes);
  for (int first = 0; first < 0x10000; first += ops_.lanes) {
    for (int i = 0; i < ops_.lanes; ++i) halves[i] = static_cast<uint16_t>(first + i);
    ops_.load_half(halves.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      const float expected = ggml_fp16_to_fp32(halves[i]);
      expect_same(y[i], expected, testing::Message() << "half " << halves[i]);
      expect_same(ops_.half_to_float(halves[i]), expected, testing::Message() << "half " << halves[i]);
    }
    ops_.load_bfloat(halves.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      const float expected = std::bit_cast<float>(static_cast<uint32_t>(halves[i]) << 16);
      expect_same(y[i], expected, testing::Message() << "bfloat " << halves[i]);
    }
  }
}

TEST_P(SimdTest, RoundsToHalfAsGgmlDoes) {
  const auto check = [&](float x) {
    expect_same(ops_.round_to_half(x), ggml_fp16_to_fp32(ggml_fp32_to_fp16(x)), testing::Message() << x);
  };
  // Every finite half, the middle to the next one, and the floats beside that.
  for (int h = 0; h < 0x7C00; ++h) {
    const float here = ops_.half_to_float(static_cast<uint16_t>(h));
    const float next = h == 0x7BFF ? 65536.0f : ops_.half_to_float(static_cast<uint16_t>(h + 1));
    const float middle = (here + next) / 2;
    for (const float x : {here, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)}) {
      check(x);
      check(-x);
    }
  }
  for (int trial = 0; trial < 10 * kTrials; ++trial) check(any_float());
  check(kInf);
  check(std::numeric_limits<float>::denorm_min());
}

TEST_P(SimdTest, ReadsBytesOfBothSigns) {
  std::vector<float> y(ops_.lanes);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<std::byte> bytes = any_bytes(ops_.lanes);
    const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
    ops_.load_uint8(p, y.data());
    for (int i = 0; i < ops_.lanes; ++i) EXPECT_EQ(y[i], static_cast<float>(p[i]));
    ops_.load_int8(reinterpret_cast<const int8_t*>(p), y.data());
    for (int i = 0; i < ops_.lanes; ++i) EXPECT_EQ(y[i], static_cast<float>(static_cast<int8_t>(p[i])));
  }
}

TEST_P(SimdTest, Integers) {
  std::vector<int32_t> n(ops_.lanes);
  std::vector<float> y(ops_.lanes);
  std::vector<int8_t> bytes(ops_.lanes);
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<int32_t> a = any_ints(-1'000'000'000, 1'000'000'000);
    const std::vector<int32_t> b = any_ints(-1'000'000'000, 1'000'000'000);
    ops_.add_ints(a.data(), b.data(), n.data());
    ops_.to_floats(a.data(), y.data());
    ops_.store_int8(a.data(), bytes.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      EXPECT_EQ(n[i], a[i] + b[i]);
      EXPECT_EQ(y[i], static_cast<float>(a[i]));
      EXPECT_EQ(bytes[i], static_cast<int8_t>(a[i]));
    }
    ops_.as_floats(a.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      expect_same(y[i], std::bit_cast<float>(a[i]), testing::Message() << "bits " << a[i]);
    }

    std::vector<float> x(ops_.lanes);
    for (float& v : x)
      v = static_cast<float>(pick(-16'000'000, 16'000'000)) * (trial % 2 == 0 ? 0.25f : 1e-5f);
    ops_.round_to_ints(x.data(), n.data());
    for (int i = 0; i < ops_.lanes; ++i) {
      EXPECT_EQ(static_cast<float>(n[i]), std::nearbyint(x[i])) << x[i];
    }

    const std::vector<int32_t> exponents = any_ints(-126, 127);
    for (int i = 0; i < ops_.lanes; ++i) x[i] = 0x1.8p23f + static_cast<float>(exponents[i] + 127);
    ops_.exponent_of_bits(x.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) EXPECT_EQ(y[i], std::ldexp(1.0f, exponents[i]));
    ops_.exp2_int(exponents.data(), y.data());
    for (int i = 0; i < ops_.lanes; ++i) EXPECT_EQ(y[i], std::ldexp(1.0f, exponents[i]));
  }
}

TEST_P(SimdTest, BitsStayInTheirByte) {
  const size_t n = 4 * ops_.lanes;
  std::vector<std::byte> y(n);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<std::byte> a = any_bytes(n), b = any_bytes(n);
    for (const SimdOps::Bits& bits : ops_.bits) {
      bits.run(a.data(), y.data());
      for (size_t i = 0; i < n; ++i) {
        const std::byte moved = bits.shift >= 0 ? a[i] >> bits.shift : a[i] << -bits.shift;
        EXPECT_EQ(y[i], moved & std::byte{bits.mask}) << bits.shift << ", " << int{bits.mask};
      }
    }
    ops_.either(a.data(), b.data(), y.data());
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], a[i] | b[i]);
  }
}

TEST_P(SimdTest, BytesAreLookedUp) {
  uint8_t table[16];
  for (uint8_t& x : table) x = static_cast<uint8_t>(pick(0, 255));
  const size_t n = 4 * ops_.lanes;
  std::vector<std::byte> y(n);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<std::byte> places = any_bytes(n, 0, 15);
    ops_.look_up(table, places.data(), y.data());
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(static_cast<int>(y[i]), table[static_cast<int>(places[i])]);
  }
}

TEST_P(SimdTest, FiveBitsAreANibbleAndABit) {
  const size_t n = 4 * ops_.lanes;
  std::vector<std::byte> y(n);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<std::byte> low = any_bytes(n), fifth = any_bytes(n);
    for (const SimdOps::FiveBits& five : ops_.five_bits) {
      five.run(low.data(), fifth.data(), y.data());
      for (size_t i = 0; i < n; ++i) {
        const int nibble = static_cast<int>(low[i]) >> (4 * five.nibble) & 15;
        const int stored = static_cast<int>(fifth[i]) >> five.bit & 1;
        const int bit = ops_.fifth_offset == 0 ? stored : 1 - stored;
        EXPECT_EQ(static_cast<int8_t>(y[i]), nibble + 16 * bit - ops_.fifth_offset)
            << five.nibble << ", " << five.bit;
      }
    }
  }
}

TEST_P(SimdTest, SixBitsAreANibbleAndTwoBits) {
  const size_t n = 4 * ops_.lanes;
  std::vector<std::byte> y(n);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<std::byte> low = any_bytes(n), high = any_bytes(n);
    for (const SimdOps::SixBits& six : ops_.six_bits) {
      six.run(low.data(), high.data(), y.data());
      for (size_t i = 0; i < n; ++i) {
        const int nibble = static_cast<int>(low[i]) >> (4 * (six.step / 2)) & 15;
        const int weight = (static_cast<int>(high[i]) >> (2 * six.step) & 3) * 16 + nibble;
        const int expected = !ops_.signed_weights ? weight : 4 * (weight < 32 ? weight : weight - 64);
        EXPECT_EQ(static_cast<int8_t>(y[i]), expected) << six.step;
      }
    }
  }
}

TEST_P(SimdTest, DotProductsAreExact) {
  for (const SimdOps::Dot& dot : ops_.dot16) {
    const bool is_signed = dot.max_weight == 255 && ops_.byte_bias == 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      // The first trials have the largest numbers everywhere: sums of 16 bits would
      // overflow there first.
      const bool extreme = trial < 64;
      std::vector<std::byte> w =
          any_bytes(16 * ops_.lanes, extreme ? dot.max_weight : 0, dot.max_weight);
      if (extreme && is_signed) {
        for (std::byte& weight : w) weight = static_cast<std::byte>(trial % 2 == 0 ? -128 : 127);
      }
      std::vector<int8_t> x(16);
      for (int8_t& q : x) {
        q = static_cast<int8_t>(!extreme     ? pick(-127, 127)
                                : trial < 32 ? 127
                                : trial < 48 ? -127
                                             : pick(0, 1) * 254 - 127);
      }
      const std::vector<int32_t> acc = any_ints(-1'000'000'000, 1'000'000'000);
      std::vector<int32_t> y(ops_.lanes);
      dot.run(acc.data(), w.data(), x.data(), y.data());
      for (int lane = 0; lane < ops_.lanes; ++lane) {
        int32_t sum = acc[lane];
        for (int k = 0; k < 16; ++k) {
          const std::byte weight = w[k / 4 * 4 * ops_.lanes + 4 * lane + k % 4];
          sum += (is_signed ? static_cast<int8_t>(weight) : static_cast<int>(weight)) * x[k];
        }
        ASSERT_EQ(y[lane], sum) << "weights to " << dot.max_weight << ", lane " << lane;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SimdTest, testing::ValuesIn(available_kernels()),
                         [](const auto& set) { return std::string(set.param->name); });

}  // namespace
}  // namespace forerun::kernels
