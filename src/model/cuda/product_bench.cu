// Times the products of an 8B llama-like model: microseconds, and GB/s of packed weights for few rows,
// TFLOPS for many.
// Usage: product_bench [type...]   (names as ggml has them: f16, q8_0, q4_K, ...)
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "model/cuda/bench_timing.h"
#include "model/cuda/device_array.h"
#include "model/cuda/product.h"

namespace forerun::cuda {
namespace {

// Bits of weights and rows. As halves, and as the halves of BF16, they are neither infinite nor NaN.
__global__ void fill_randomly(uint32_t* to, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    to[i] = static_cast<uint32_t>(z >> 32) & 0xbfffbfffu;
  }
}

struct Shape {
  const char* name;
  int64_t n_out, n_in;
};
constexpr Shape kShapes[] = {{"qkv", 6144, 4096},
                             {"out", 4096, 4096},
                             {"gate+up", 28672, 4096},
                             {"down", 4096, 14336},
                             {"head", 128256, 4096}};
constexpr int kFew[] = {1, 2, 4, 8, 16, 32, 64};
constexpr int kMany[] = {128, 256, 512};
constexpr ggml_type kTypes[] = {GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_MXFP4,
                                GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K};

constexpr size_t kWeightBytes = size_t{4} << 30;
constexpr size_t kMinRotation = size_t{256} << 20;  // several times what an L2 holds
constexpr int kLaunches = 20, kMaxInputs = 14336;
constexpr size_t kHalves = size_t{512} * (kMaxInputs + 256), kPartFloats = size_t{80} << 20;

struct Buffers {
  DeviceArray<std::byte> weights{kWeightBytes};
  DeviceArray<__half> x{kHalves};
  DeviceArray<float> parts{kPartFloats};

  Buffers() {
    fill_randomly<<<1024, 256>>>(reinterpret_cast<uint32_t*>(weights.get()), kWeightBytes / 4);
    fill_randomly<<<1024, 256>>>(reinterpret_cast<uint32_t*>(x.get()), kHalves / 2);
    check(cudaDeviceSynchronize(), "fill its memory");
  }
};

// Microseconds of one product among kLaunches, each with weights that no cache has.
double product_us(Matrix matrix, int n_rows, const Buffers& buffers) {
  const size_t n_bytes = matrix.n_bytes();
  const size_t n_copies =
      std::min(kWeightBytes / n_bytes, std::max<size_t>(2, kMinRotation / n_bytes + 1));
  const Operand x{.data = buffers.x.get(),
                  .padded_rows = padded(n_rows),
                  .n_inputs = padded_inputs(*matrix.format, matrix.n_in)};
  return microseconds(kLaunches, [&](int call, cudaStream_t stream) {
    matrix.data = buffers.weights.get() + call % n_copies * n_bytes;
    multiply(matrix, x, n_rows, buffers.parts.get(), stream);
  });
}

// figure(matrix, n_rows, us) stands behind the microseconds.
template <typename Figure>
void bench(ggml_type type, std::span<const int> row_counts, const char* unit, const Buffers& buffers,
           Figure figure) {
  std::printf("\n%s: us (%s)\n%-8s", ggml_type_name(type), unit, "rows");
  for (const int n_rows : row_counts) std::printf("%15d", n_rows);
  for (const Shape& shape : kShapes) {
    const Matrix matrix = matrix_of(*format_of(type), shape.n_in, shape.n_out);
    std::printf("\n%-8s", shape.name);
    for (const int n_rows : row_counts) {
      const size_t n_floats = static_cast<size_t>(matrix.most_parts(n_rows)) * n_rows * matrix.n_out;
      if (n_floats > kPartFloats) {
        std::printf("%15s", "-");
        continue;
      }
      const double us = product_us(matrix, n_rows, buffers);
      std::printf("%8.1f (%4.0f)", us, figure(matrix, n_rows, us));
    }
    std::fflush(stdout);
  }
  std::printf("\n");
}

void bench(ggml_type type, const Buffers& buffers) {
  bench(type, kFew, "GB/s", buffers, [](const Matrix& matrix, int, double us) {
    return static_cast<double>(matrix.n_bytes()) / us * 1e-3;
  });
  bench(type, kMany, "TFLOPS", buffers, [](const Matrix& matrix, int n_rows, double us) {
    return 2e-6 * static_cast<double>(matrix.n_in) * static_cast<double>(matrix.n_out) * n_rows / us;
  });
}

}  // namespace
}  // namespace forerun::cuda

int main(int n_args, char** args) {
  using namespace forerun::cuda;
  if (!has_device()) {
    std::printf("no CUDA device\n");
    return 0;
  }
  const Buffers buffers;
  for (const ggml_type type : kTypes) {
    const auto is_type = [&](const char* name) { return std::strcmp(name, ggml_type_name(type)) == 0; };
    if (n_args == 1 || std::any_of(args + 1, args + n_args, is_type)) bench(type, buffers);
  }
}
