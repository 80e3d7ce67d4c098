// Weights and rows of products, for tests, and what comes of them in double precision.
#pragma once

#include <cuda_fp16.h>
#include <ggml.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/check.h"
#include "model/cuda/product.h"

namespace forerun::cuda {

constexpr ggml_type kTypes[] = {GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_MXFP4,
                                GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K};

inline void check(cudaError_t error) {
  CHECK(error == cudaSuccess);
}

// --- weights as in a file, with scales that are neither tiny nor huge ---

using Random = std::mt19937;

inline float uniform(Random& random) {
  return static_cast<float>(random()) * 0x1p-31f - 1.f;
}
inline float moderate_scale(Random& random) {
  const float u = uniform(random);
  return (u < 0 ? u - 0.5f : u + 0.5f) * 0x1p-7f;
}

inline std::vector<int> places_of_half_scales(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K: return {0, 2};
    case GGML_TYPE_Q6_K: return {208};
    case GGML_TYPE_MXFP4: return {};
    default: return {0};
  }
}

inline std::vector<std::byte> random_file_rows(ggml_type type, int64_t n_in, int64_t n_rows,
                                               Random& random) {
  const size_t row_bytes = ggml_row_size(type, n_in), block_bytes = ggml_type_size(type);
  std::vector<std::byte> file(row_bytes * n_rows);
  if (type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) {
    for (size_t at = 0; at < file.size(); at += 2) {
      const float value = uniform(random) * 0.1f;
      const uint16_t bits =
          type == GGML_TYPE_F16 ? ggml_fp32_to_fp16(value) : ggml_fp32_to_bf16(value).bits;
      std::memcpy(&file[at], &bits, 2);
    }
    return file;
  }
  for (size_t at = 0; at < file.size(); ++at) file[at] = static_cast<std::byte>(random() >> 7 & 255);
  const std::vector<int> places = places_of_half_scales(type);
  for (size_t at = 0; at < file.size(); at += block_bytes) {
    if (type == GGML_TYPE_MXFP4) file[at] = static_cast<std::byte>(115 + random() % 10);
    for (const int place : places) {
      const ggml_fp16_t scale = ggml_fp32_to_fp16(moderate_scale(random));
      std::memcpy(&file[at + place], &scale, 2);
    }
  }
  return file;
}

// --- rows ---

struct Rows {
  int64_t n_in;
  std::vector<__half> values;  // [row][input]

  Rows(int n_rows, int64_t n_in, Random& random) : n_in(n_in) {
    for (int64_t i = 0; i < n_rows * n_in; ++i) values.push_back(__float2half(uniform(random)));
  }
  __half at(int row, int64_t k) const { return values[row * n_in + k]; }

  // The chosen rows as an operand; what may be anything is NaN.
  std::vector<__half> operand(const std::vector<int>& chosen, int64_t n_padded_inputs) const {
    const int n = static_cast<int>(chosen.size());
    const Operand place{.data = nullptr, .padded_rows = padded(n), .n_inputs = n_padded_inputs};
    std::vector<__half> to(operand_halves(n, n_padded_inputs),
                           __float2half(std::numeric_limits<float>::quiet_NaN()));
    for (int row = 0; row < n; ++row) {
      for (int64_t k = 0; k < n_padded_inputs; ++k) {
        to[place.index(k, row)] = k < n_in ? at(chosen[row], k) : __float2half(0.f);
      }
    }
    return to;
  }
};

// [output] in double precision, of the values that ggml says the file has.
inline std::vector<double> reference(ggml_type type, const std::vector<std::byte>& file,
                                     const Rows& rows, int row) {
  const size_t row_bytes = ggml_row_size(type, rows.n_in);
  std::vector<float> weights(rows.n_in);
  std::vector<double> x(rows.n_in), y;
  for (int64_t k = 0; k < rows.n_in; ++k) x[k] = __half2float(rows.at(row, k));
  for (size_t at = 0; at < file.size(); at += row_bytes) {
    ggml_get_type_traits(type)->to_float(&file[at], weights.data(), rows.n_in);
    double sum = 0;
    for (int64_t k = 0; k < rows.n_in; ++k) sum += double{weights[k]} * x[k];
    y.push_back(sum);
  }
  return y;
}

// The norm of differences over the norm of what was expected, of all rows that were added.
struct RelativeError {
  double difference = 0, norm = 0;

  void add(const float* y, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(y[i] - expected[i], 2);
      norm += std::pow(expected[i], 2);
    }
  }
  double value() const { return std::sqrt(difference / norm); }
};

}  // namespace forerun::cuda
