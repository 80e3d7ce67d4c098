#include <ggml-cpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/test_numbers.h"
#include "model/kernels/activation_fixtures.h"
#include "model/kernels/kernels.h"
#include "support/thorough.h"

namespace forerun {
namespace {

using ::testing::Each;

constexpr ggml_type kTypes[] = {GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
                                GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K,
                                GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_F32,  GGML_TYPE_MXFP4};

uint16_t half_at(const uint8_t* p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof(h));
  return h;
}
float half_value_at(const uint8_t* p) {
  return ggml_fp16_to_fp32(half_at(p));
}

// A matrix as a file has it: rows of one ggml type.
struct Matrix {
  ggml_type type;
  int64_t n_in, n_out;
  std::vector<uint8_t> data = {};

  size_t row_bytes() const { return ggml_row_size(type, n_in); }
  const uint8_t* row(int64_t out) const { return data.data() + out * row_bytes(); }
};

Matrix quantize(ggml_type type, int64_t n_in, int64_t n_out, const std::vector<float>& weights) {
  Matrix matrix{.type = type, .n_in = n_in, .n_out = n_out};
  matrix.data.resize(n_out * matrix.row_bytes());
  ggml_quantize_chunk(type, weights.data(), matrix.data.data(), 0, n_out, n_in, nullptr);
  return matrix;
}

Matrix random_matrix(ggml_type type, int64_t n_in, int64_t n_out, std::mt19937& random) {
  std::vector<float> weights(n_in * n_out);
  fill_normally(weights, random(), 0.01f, 0.05f);
  return quantize(type, n_in, n_out, weights);
}

// 32 weights of one output: scale * quant + minimum, with a scale for each half.
struct Step {
  int quants[32];
  float scales[2];
  float minimum = 0;
};

void add_bit(const uint8_t* bits, int k, int value, int& quant) {
  quant += (bits[k / 8] >> (k % 8) & 1) * value;
}

Step step_of_32(ggml_type type, const uint8_t* block) {
  Step s;
  s.scales[0] = s.scales[1] = half_value_at(block);
  const bool has_minimum = type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1;
  const bool has_fifth = type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q5_1;
  if (has_minimum) s.minimum = half_value_at(block + 2);
  const uint8_t* fifth = block + (has_minimum ? 4 : 2);
  const uint8_t* quants = fifth + (has_fifth ? 4 : 0);
  for (int k = 0; k < 32; ++k) {
    if (type == GGML_TYPE_Q8_0) {
      s.quants[k] = static_cast<int8_t>(quants[k]);
      continue;
    }
    s.quants[k] = k < 16 ? quants[k] & 15 : quants[k - 16] >> 4;
    if (has_fifth) add_bit(fifth, k, 16, s.quants[k]);
    if (!has_minimum) s.quants[k] -= has_fifth ? 16 : 8;
  }
  return s;
}

Step step_of_4_or_5_bit_k(ggml_type type, const uint8_t* block, int step) {
  const uint8_t* packed = block + 4;
  const int scale =
      step < 4 ? packed[step] & 63 : (packed[step + 4] & 15) + (packed[step - 4] >> 6) * 16;
  const int minimum =
      step < 4 ? packed[step + 4] & 63 : (packed[step + 4] >> 4) + (packed[step] >> 6) * 16;
  Step s;
  s.scales[0] = s.scales[1] = half_value_at(block) * static_cast<float>(scale);
  s.minimum = -(half_value_at(block + 2) * static_cast<float>(minimum));
  const uint8_t* fifth = block + 16;
  const uint8_t* quants = fifth + (type == GGML_TYPE_Q5_K ? 32 : 0);
  for (int k = 0; k < 32; ++k) {
    s.quants[k] = quants[step / 2 * 32 + k] >> (step % 2 * 4) & 15;
    if (type == GGML_TYPE_Q5_K) s.quants[k] += (fifth[k] >> step & 1) * 16;
  }
  return s;
}

Step step_of_6_bit_k(const uint8_t* block, int step) {
  const int part = step / 4, i = step % 4;
  const uint8_t* low = block + 64 * part + 32 * (i % 2);
  const uint8_t* high = block + 128 + 32 * part;
  const int8_t* scales = reinterpret_cast<const int8_t*>(block + 192);
  Step s;
  for (int half = 0; half < 2; ++half) {
    s.scales[half] = half_value_at(block + 208) * static_cast<float>(scales[2 * step + half]);
  }
  for (int k = 0; k < 32; ++k) {
    s.quants[k] = (low[k] >> (i / 2 * 4) & 15) + (high[k] >> (2 * i) & 3) * 16 - 32;
  }
  return s;
}

Step step_of_mxfp4(const uint8_t* block) {
  constexpr int kMagnitudes[8] = {0, 1, 2, 3, 4, 6, 8, 12};  // twice the numbers that are meant
  Step s;
  s.scales[0] = s.scales[1] = std::ldexp(1.0f, block[0] - 128);
  for (int k = 0; k < 32; ++k) {
    const int nibble = k < 16 ? block[1 + k] & 15 : block[1 + k - 16] >> 4;
    s.quants[k] = nibble < 8 ? kMagnitudes[nibble] : -kMagnitudes[nibble - 8];
  }
  return s;
}

Step step_of(ggml_type type, const uint8_t* row, int64_t step) {
  const int64_t per_block = ggml_blck_size(type) / 32;
  const uint8_t* block = row + step / per_block * ggml_type_size(type);
  const int in_block = static_cast<int>(step % per_block);
  switch (type) {
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K: return step_of_4_or_5_bit_k(type, block, in_block);
    case GGML_TYPE_Q6_K: return step_of_6_bit_k(block, in_block);
    case GGML_TYPE_MXFP4: return step_of_mxfp4(block);
    default: return step_of_32(type, block);
  }
}

bool is_float_type(ggml_type type) {
  return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 || type == GGML_TYPE_F32;
}

std::vector<float> dequantize_row(ggml_type type, const uint8_t* row, int64_t n) {
  std::vector<float> values(n);
  if (type == GGML_TYPE_F32) {
    std::memcpy(values.data(), row, n * sizeof(float));
  } else {
    ggml_get_type_traits(type)->to_float(row, values.data(), n);
  }
  return values;
}

std::vector<Step> steps_of(ggml_type type, const uint8_t* row, int64_t n_in) {
  std::vector<Step> steps;
  for (int64_t i = 0; i < n_in / 32; ++i) steps.push_back(step_of(type, row, i));
  return steps;
}

// What a product is, and the sum of the magnitudes of what is added up.
struct Product {
  float value;
  double magnitude;
};

Product product(ggml_type type, std::span<const Step> weights, const ActivationBlock* x) {
  float sum = 0;
  double magnitude = 0;
  for (const Step& s : weights) {
    const auto dot = [quants = s.quants, q = x->q](int begin, int end) {
      int total = 0;
      for (int k = begin; k < end; ++k) total += quants[k] * q[k];
      return static_cast<float>(total);
    };
    const auto add_scaled = [&](float scale, float integer) {
      const float scaled = scale * integer;
      sum = std::fma(scaled, x->scale, sum);
      magnitude += std::abs(static_cast<double>(scaled) * x->scale);
    };
    if (type == GGML_TYPE_Q6_K) {
      add_scaled(s.scales[0], dot(0, 16));
      add_scaled(s.scales[1], dot(16, 32));
    } else {
      add_scaled(s.scales[0], dot(0, 32));
    }
    sum = std::fma(s.minimum, x->scaled_sum, sum);
    magnitude += std::abs(static_cast<double>(s.minimum) * x->scaled_sum);
    ++x;
  }
  return {.value = sum, .magnitude = magnitude};
}

Product product(std::span<const float> weights, const float* x) {
  float chains[2] = {};
  double magnitude = 0;
  int chain = 0;
  for (const float weight : weights) {
    chains[chain] = std::fma(weight, *x, chains[chain]);
    magnitude += std::abs(static_cast<double>(weight) * *x);
    chain = 1 - chain;
    ++x;
  }
  return {.value = chains[0] + chains[1], .magnitude = magnitude};
}

// Rows of activations that a type is multiplied with: each by itself, whatever sets put
// together.
struct Operands {
  Operand operand;
  int64_t n_in;
  int n_rows;
  std::vector<std::byte> data = {};

  size_t row_bytes() const {
    return operand == Operand::kBlocks ? n_in / 32 * sizeof(ActivationBlock) : n_in * sizeof(float);
  }
  std::byte* row(int r) { return data.data() + r * row_bytes(); }
  const std::byte* row(int r) const { return data.data() + r * row_bytes(); }
  template <typename T>
  const T* row_as(int r) const {
    return reinterpret_cast<const T*>(row(r));
  }
};

// Rows as a set of kernels wants them: in bundles, with a gap after each. All bytes that are
// no row's are `rest`.
struct LaidOut {
  LaidOut(const KernelSet& kernels, const Operands& x, int first_row, int n_rows, std::byte rest) {
    const bool is_blocks = x.operand == Operand::kBlocks;
    const int together = is_blocks ? kernels.rows_together : 1;
    const size_t block_bytes = is_blocks ? kernels.activation_bytes : sizeof(float);
    const int64_t n_blocks = is_blocks ? x.n_in / 32 : x.n_in;
    stride = (n_blocks + 1) * block_bytes;
    data.assign((n_rows + together - 1) / together * stride, rest);
    for (int r = 0; r < n_rows; ++r) {
      std::byte* to = data.data() + r / together * stride;
      if (!is_blocks) std::memcpy(to, x.row(first_row + r), x.row_bytes());
      for (int64_t i = 0; is_blocks && i < n_blocks; ++i) {
        put_block(kernels, x.row_as<ActivationBlock>(first_row + r)[i], r % together,
                  to + i * block_bytes);
      }
    }
  }

  std::vector<std::byte> data;
  size_t stride;
};
constexpr std::byte kNaNs{0xFF};  // as floats; -1 as integers

ActivationBlock make_block(const int8_t* q, float scale) {
  ActivationBlock block{};
  std::copy_n(q, 32, block.q);
  block.scale = scale;
  for (int i = 0; i < 32; ++i) {
    block.sum += q[i];
    if (i < 16) block.first_half_sum += q[i];
  }
  block.scaled_sum = scale * static_cast<float>(block.sum);
  return block;
}

Operand operand_of(ggml_type type) {
  return is_float_type(type) ? Operand::kFloats : Operand::kBlocks;
}

Operands empty_operands(ggml_type type, int64_t n_in, int n_rows) {
  Operands x{.operand = operand_of(type), .n_in = n_in, .n_rows = n_rows};
  x.data.resize(x.row_bytes() * n_rows);
  return x;
}

Operands random_operands(ggml_type type, int64_t n_in, int n_rows, std::mt19937& random) {
  Operands x = empty_operands(type, n_in, n_rows);
  std::uniform_int_distribution<int> integer(-127, 127);
  std::uniform_real_distribution<float> real(-1.0f, 1.0f);
  for (int r = 0; r < n_rows; ++r) {
    if (x.operand == Operand::kFloats) {
      float* numbers = reinterpret_cast<float*>(x.row(r));
      std::generate_n(numbers, n_in, [&] { return real(random); });
      continue;
    }
    ActivationBlock* blocks = reinterpret_cast<ActivationBlock*>(x.row(r));
    for (int64_t i = 0; i < n_in / 32; ++i) {
      int8_t q[32];
      std::generate_n(q, 32, [&] { return static_cast<int8_t>(integer(random)); });
      blocks[i] = make_block(q, ggml_fp16_to_fp32(ggml_fp32_to_fp16(std::abs(real(random)) * 0.05f)));
    }
  }
  return x;
}

// Outputs of all rows, n_out per row.
using Outputs = std::vector<float>;

Outputs expected_outputs(const Matrix& matrix, const Operands& x) {
  Outputs y(x.n_rows * matrix.n_out);
  for (int64_t out = 0; out < matrix.n_out; ++out) {
    const auto set = [&](int r, const Product& result) { y[r * matrix.n_out + out] = result.value; };
    if (x.operand == Operand::kBlocks) {
      const auto weights = steps_of(matrix.type, matrix.row(out), x.n_in);
      for (int r = 0; r < x.n_rows; ++r)
        set(r, product(matrix.type, weights, x.row_as<ActivationBlock>(r)));
    } else {
      const auto weights = dequantize_row(matrix.type, matrix.row(out), x.n_in);
      for (int r = 0; r < x.n_rows; ++r) set(r, product(weights, x.row_as<float>(r)));
    }
  }
  return y;
}

// A matrix packed for one set of kernels.
class Packed {
 public:
  Packed(const KernelSet& kernels, const Matrix& matrix)
      : kernels_(kernels),
        lanes_(kernels.lanes),
        n_out_(matrix.n_out),
        format_(*find_format(kernels, matrix.type)) {
    n_blocks_ = matrix.n_in / format_.block_size;
    const size_t tile_bytes = n_blocks_ * format_.block_bytes;
    tiles_.assign(n_tiles() * tile_bytes, std::byte{0xA5});
    for (int64_t t = 0; t < n_tiles(); ++t) {
      const int n_rows = static_cast<int>(std::min<int64_t>(lanes_, n_out_ - t * lanes_));
      format_.pack(reinterpret_cast<const std::byte*>(matrix.row(t * lanes_)), matrix.row_bytes(),
                   n_rows, n_blocks_, tiles_.data() + t * tile_bytes);
    }
  }

  Outputs multiply(const Operands& x, int first_row, int n_rows, std::byte rest = kNaNs) const {
    constexpr float kUntouched = 12345.0f;
    const LaidOut rows(kernels_, x, first_row, n_rows, rest);
    const int64_t stride = n_tiles() * lanes_ + 3;
    std::vector<float> padded(stride * n_rows, kUntouched);
    format_.multiply({.tiles = tiles_.data(),
                      .n_tiles = n_tiles(),
                      .n_blocks = n_blocks_,
                      .x = rows.data.data(),
                      .x_stride = rows.stride,
                      .n_rows = n_rows,
                      .y = padded.data(),
                      .y_stride = stride});
    Outputs y;
    for (int r = 0; r < n_rows; ++r) {
      const float* row = padded.data() + r * stride;
      y.insert(y.end(), row, row + n_out_);
      EXPECT_THAT(std::vector<float>(row + n_out_, row + n_tiles() * lanes_), Each(0.0f))
          << "missing rows";
      EXPECT_THAT(std::vector<float>(row + n_tiles() * lanes_, row + stride), Each(kUntouched));
    }
    return y;
  }

 private:
  int64_t n_tiles() const { return (n_out_ + lanes_ - 1) / lanes_; }

  const KernelSet& kernels_;
  int lanes_;
  int64_t n_out_;
  int64_t n_blocks_;
  const WeightFormat& format_;
  std::vector<std::byte> tiles_;
};

void expect_same_bits(const float* actual, const float* expected, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "output " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

// Calls test(type) for all types and names what fails.
template <typename F>
void for_each_type(F test) {
  for (const ggml_type type : kTypes) {
    SCOPED_TRACE(ggml_type_name(type));
    test(type);
  }
}
template <typename F>
void for_each_set(F test) {
  for (const KernelSet* kernels : available_kernels()) {
    SCOPED_TRACE(kernels->name);
    test(*kernels);
  }
}

// About n inputs: a multiple of the type's block, or n + rest where any number will do.
int64_t some_inputs(ggml_type type, int64_t n, int64_t rest) {
  const int64_t block = ggml_blck_size(type);
  return block == 1 ? n + rest : std::max(block, n / block * block);
}

TEST(Products, EverySetHasAllTypes) {
  for_each_set([](const KernelSet& kernels) {
    EXPECT_EQ(kernels.formats.size(), std::size(kTypes));
    for_each_type([&](ggml_type type) {
      const WeightFormat* format = find_format(kernels, type);
      ASSERT_NE(format, nullptr);
      EXPECT_EQ(format->operand, operand_of(type));
      EXPECT_EQ(format->block_size, ggml_blck_size(type));
    });
  });
}

// The definition below takes blocks apart as ggml does.
TEST(Products, TheDefinitionsWeightsAreGgmls) {
  std::mt19937 random(1);
  for_each_type([&](ggml_type type) {
    if (is_float_type(type)) return;
    const int64_t n_in = 512;
    const Matrix matrix = random_matrix(type, n_in, 3, random);
    for (int64_t out = 0; out < matrix.n_out; ++out) {
      const std::vector<float> expected = dequantize_row(type, matrix.row(out), n_in);
      for (int64_t k = 0; k < n_in; ++k) {
        const Step s = step_of(type, matrix.row(out), k / 32);
        const float scaled = s.scales[k % 32 / 16] * static_cast<float>(s.quants[k % 32]);
        const float tolerance = 3e-7f * (std::abs(scaled) + std::abs(s.minimum));
        ASSERT_NEAR(expected[k], scaled + s.minimum, tolerance) << "input " << k << " of " << out;
      }
    }
  });
}

TEST(Products, HaveTheBitsOfTheDefinitionForAnyNumberOfRows) {
  constexpr int kRows = 17;
  std::mt19937 random(2);
  for_each_type([&](ggml_type type) {
    for (const auto& [n_in, n_out] : {std::pair{32, 1}, {320, 37}, {576, 18}, {800, 51}}) {
      const Matrix matrix = random_matrix(type, some_inputs(type, n_in, n_out % 4), n_out, random);
      const Operands x = random_operands(type, matrix.n_in, kRows, random);
      const Outputs expected = expected_outputs(matrix, x);
      for_each_set([&](const KernelSet& kernels) {
        const Packed packed(kernels, matrix);
        for (int n_rows = 1; n_rows <= kRows; ++n_rows) {
          for (const int first : {0, (kRows - n_rows) / 2, kRows - n_rows}) {
            SCOPED_TRACE(std::to_string(n_rows) + " rows from " + std::to_string(first));
            const Outputs y = packed.multiply(x, first, n_rows);
            ASSERT_NO_FATAL_FAILURE(
                expect_same_bits(y.data(), expected.data() + first * matrix.n_out, y.size()));
          }
        }
      });
    }
  });
}

// Sets may multiply 16 or more rows in other ways: with tiles of 16 rows, and of so many
// inputs and outputs that there is a rest of each.
TEST(Products, HaveTheBitsOfTheDefinitionForManyNumbersOfRows) {
  constexpr int kRows = 70;
  std::mt19937 random(7);
  for_each_type([&](ggml_type type) {
    for (const auto& [n_in, n_out] : {std::pair{32, 270}, {800, 20}, {1056, 35}}) {
      const Matrix matrix = random_matrix(type, some_inputs(type, n_in, n_out % 4), n_out, random);
      const Operands x = random_operands(type, matrix.n_in, kRows, random);
      const Outputs expected = expected_outputs(matrix, x);
      for_each_set([&](const KernelSet& kernels) {
        const Packed packed(kernels, matrix);
        for (const int n_rows : test::thorough<std::vector<int>>(
                 {16, 17, 24, 25, 31, 32, 33, 40, 41, 48, 55, 63, 64, 65, 70}, {16, 25, 33, 65, 70})) {
          SCOPED_TRACE(std::to_string(n_rows) + " rows");
          const int first = (kRows - n_rows) / 2;
          const Outputs y = packed.multiply(x, first, n_rows);
          ASSERT_NO_FATAL_FAILURE(
              expect_same_bits(y.data(), expected.data() + first * matrix.n_out, y.size()));
        }
      });
    }
  });
}

// More than what stays in a cache is divided among several passes.
TEST(Products, HaveTheBitsOfTheDefinitionForManyRows) {
  constexpr int kRows = 90;
  std::mt19937 random(3);
  for_each_type([&](ggml_type type) {
    const Matrix matrix = random_matrix(type, 4096, 18, random);
    const Operands x = random_operands(type, matrix.n_in, kRows, random);
    const Outputs expected = expected_outputs(matrix, x);
    for_each_set([&](const KernelSet& kernels) {
      const Outputs y = Packed(kernels, matrix).multiply(x, 0, kRows);
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(y.data(), expected.data(), y.size()));
    });
  });
}

// Few of such long rows stay in a cache.
TEST(Products, HaveTheBitsOfTheDefinitionForAnyNumberOfLongRows) {
  constexpr int kRows = 17, kOutputs = 9;
  std::mt19937 random(7);
  for (const ggml_type type : {GGML_TYPE_Q4_1, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K, GGML_TYPE_F32}) {
    SCOPED_TRACE(ggml_type_name(type));
    const Matrix matrix = random_matrix(type, 64 * 1024, kOutputs, random);
    const Operands x = random_operands(type, matrix.n_in, kRows, random);
    const Outputs expected = expected_outputs(matrix, x);
    for_each_set([&](const KernelSet& kernels) {
      const Packed packed(kernels, matrix);
      for (int n_rows = 1; n_rows <= kRows; n_rows += test::thorough(1, 4)) {
        SCOPED_TRACE(n_rows);
        const Outputs y = packed.multiply(x, 0, n_rows);
        ASSERT_EQ(y.size(), static_cast<size_t>(n_rows * kOutputs));
        ASSERT_NO_FATAL_FAILURE(expect_same_bits(y.data(), expected.data(), y.size()));
      }
    });
  }
}

// What lies in a bundle beside the last row, or behind a row, has no part in any output.
TEST(Products, BytesThatAreNoRowsChangeNothing) {
  constexpr int kRows = 9;
  std::mt19937 random(8);
  for_each_type([&](ggml_type type) {
    const Matrix matrix = random_matrix(type, 512, 19, random);
    const Operands x = random_operands(type, matrix.n_in, kRows, random);
    const Outputs expected = expected_outputs(matrix, x);
    for_each_set([&](const KernelSet& kernels) {
      const Packed packed(kernels, matrix);
      for (int n_rows = 1; n_rows <= kRows; ++n_rows) {
        for (const std::byte rest : {std::byte{0}, std::byte{0x7F}, std::byte{0x80}, kNaNs}) {
          SCOPED_TRACE(std::to_string(n_rows) + " rows among " +
                       std::to_string(std::to_integer<int>(rest)));
          const Outputs y = packed.multiply(x, 0, n_rows, rest);
          ASSERT_NO_FATAL_FAILURE(expect_same_bits(y.data(), expected.data(), y.size()));
        }
      }
    });
  });
}

TEST(Products, ARowMayBeLargerThanWhatStaysInACache) {
  std::mt19937 random(6);
  for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_F32}) {
    const Matrix matrix = random_matrix(type, 20000 * 32, 2, random);
    const Operands x = random_operands(type, matrix.n_in, 2, random);
    const Outputs expected = expected_outputs(matrix, x);
    for_each_set([&](const KernelSet& kernels) {
      for (const int n_rows : {1, 2}) {
        const Outputs y = Packed(kernels, matrix).multiply(x, 0, n_rows);
        ASSERT_NO_FATAL_FAILURE(expect_same_bits(y.data(), expected.data(), y.size()));
      }
    });
  }
}

TEST(Products, Mxfp4HasAllScalesThatGgmlHas) {
  for_each_set([](const KernelSet& kernels) {
    for (int exponent = 0; exponent < 256; ++exponent) {
      Matrix matrix{.type = GGML_TYPE_MXFP4, .n_in = 32, .n_out = 1};
      matrix.data.assign(matrix.row_bytes(), 0x22);
      matrix.data[0] = static_cast<uint8_t>(exponent);
      Operands x = empty_operands(matrix.type, 32, 1);
      const int8_t one[32] = {1};
      *reinterpret_cast<ActivationBlock*>(x.row(0)) = make_block(one, 1.0f);
      const float expected = dequantize_row(matrix.type, matrix.row(0), 32)[0];
      // Beyond that sums of so large numbers are none.
      const bool is_small = expected < 0x1p100f;
      const float y = Packed(kernels, matrix).multiply(x, 0, 1)[0];
      EXPECT_TRUE(y == expected || !is_small) << exponent << ": " << y << ", not " << expected;
    }
  });
}

// Instructions that add products in 16 bits must not run out of them.
TEST(Products, TheLargestWeightsAndActivationsDoNotOverflow) {
  std::mt19937 random(4);
  for_each_type([&](ggml_type type) {
    if (is_float_type(type)) return;
    const int64_t n_in = 512, n_out = 24;
    std::vector<float> weights(n_in * n_out);
    // Nearly all weights of an output have the same sign, and one per 16 the other one. The
    // largest of them becomes the smallest quant, or the largest, depending on the type.
    for (int64_t i = 0; i < n_in * n_out; ++i) {
      const int64_t out = i / n_in;
      const bool is_odd_one = i % 16 == 5;
      const float magnitude = is_odd_one || out % 4 < 2 ? 1.0f : 0.97f;
      weights[i] = (out % 2 == 0) == is_odd_one ? -magnitude : magnitude;
    }
    const Matrix matrix = quantize(type, n_in, n_out, weights);
    Operands x = empty_operands(type, n_in, 34);
    for (int r = 0; r < x.n_rows; ++r) {
      for (int64_t i = 0; i < n_in / 32; ++i) {
        int8_t q[32];
        for (int k = 0; k < 32; ++k) {
          q[k] = r < 4 ? (r % 2 == 0 ? 127 : -127) : random() % 2 == 0 ? 127 : -127;
        }
        reinterpret_cast<ActivationBlock*>(x.row(r))[i] = make_block(q, 0.5f);
      }
    }
    const Outputs expected = expected_outputs(matrix, x);
    for_each_set([&](const KernelSet& kernels) {
      const Outputs y = Packed(kernels, matrix).multiply(x, 0, x.n_rows);
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(y.data(), expected.data(), y.size()));
    });
  });
}

// A row of activations as ggml quantises it for its dot products with a type: blocks of
// 32 with a scale in half precision (Q8_0), and its sum times the scale as well (Q8_1), or
// of 256 with a scale in single precision (Q8_K).
struct GgmlOperand {
  std::vector<uint8_t> data;
  std::vector<ActivationBlock> blocks;
};

GgmlOperand ggml_operand(ggml_type dot_type, const std::vector<float>& x) {
  GgmlOperand operand;
  const int64_t n = static_cast<int64_t>(x.size());
  operand.data.resize(ggml_row_size(dot_type, n));
  if (dot_type == GGML_TYPE_F32) {
    std::memcpy(operand.data.data(), x.data(), operand.data.size());
  } else {
    ggml_get_type_traits_cpu(dot_type)->from_float(x.data(), operand.data.data(), n);
  }
  for (int64_t i = 0; i < n / 32 && ggml_is_quantized(dot_type); ++i) {
    const int64_t per_block = ggml_blck_size(dot_type) / 32;
    const uint8_t* block = operand.data.data() + i / per_block * ggml_type_size(dot_type);
    float scale = half_value_at(block);
    if (dot_type == GGML_TYPE_Q8_K) std::memcpy(&scale, block, sizeof(scale));
    const int header = dot_type == GGML_TYPE_Q8_0 ? 2 : 4;
    operand.blocks.push_back(
        make_block(reinterpret_cast<const int8_t*>(block + header + i % per_block * 32), scale));
    if (dot_type == GGML_TYPE_Q8_1) operand.blocks.back().scaled_sum = half_value_at(block + 2);
  }
  return operand;
}

// ggml's dot products with the same integers and scales. Both round the same few terms
// per step (of which there are at most three), and sums of them, in another order, each
// time by no more than 2^-24 of the sum of their magnitudes. Its dot products of halves
// may be computed in half precision.
TEST(Products, AreCloseToGgmlsDotProducts) {
  ggml_cpu_init();
  std::mt19937 random(5);
  for_each_type([&](ggml_type type) {
    const int64_t n_in = 1024, n_out = 20;
    const Matrix matrix = random_matrix(type, n_in, n_out, random);
    const ggml_type_traits_cpu* traits = ggml_get_type_traits_cpu(type);
    std::vector<float> numbers(n_in);
    // As many bits as BF16 has.
    for (float& v : numbers) v = static_cast<float>(static_cast<int>(random() % 255) - 127) / 64;
    const GgmlOperand operand = ggml_operand(traits->vec_dot_type, numbers);

    Operands x = empty_operands(type, n_in, 1);
    if (is_float_type(type)) {
      std::memcpy(x.row(0), numbers.data(), n_in * sizeof(float));
    } else {
      std::memcpy(x.row(0), operand.blocks.data(), operand.blocks.size() * sizeof(ActivationBlock));
    }
    const Outputs y = Packed(best_kernels(), matrix).multiply(x, 0, 1);
    for (int64_t out = 0; out < n_out; ++out) {
      float expected;
      traits->vec_dot(static_cast<int>(n_in), &expected, 0, matrix.row(out), 0, operand.data.data(), 0,
                      1);
      const double magnitude =
          is_float_type(type)
              ? product(dequantize_row(type, matrix.row(out), n_in), numbers.data()).magnitude
              : product(type, steps_of(type, matrix.row(out), n_in), operand.blocks.data()).magnitude;
      const double roundings = is_float_type(type) ? n_in : 3.0 * n_in / 32;
      const double rounding = type == GGML_TYPE_F16 ? 0x1p-14 : 0x1p-24;
      EXPECT_NEAR(y[out], expected, 2 * roundings * rounding * magnitude) << "output " << out;
    }
  });
}

}  // namespace
}  // namespace forerun
