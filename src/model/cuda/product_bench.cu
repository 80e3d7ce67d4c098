// Microseconds, and GB/s of packed weights, of the products of an 8B llama-like model.
// Usage: product_bench [type...]   (names as ggml has them: f16, q8_0, q4_K, ...)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "model/cuda/product.h"

namespace forerun::cuda {
namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

// Any bits will do for weights: time does not depend on them.
__global__ void fill_randomly(uint32_t* to, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    to[i] = static_cast<uint32_t>(z >> 32);
  }
}

template <typename T>
T* device_array(size_t n) {
  T* data;
  check(cudaMalloc(&data, n * sizeof(T)));
  check(cudaMemset(data, 0, n * sizeof(T)));
  return data;
}

constexpr size_t kWeightBytes = size_t{4} << 30;
constexpr size_t kMinRotation = size_t{256} << 20;  // several times what an L2 holds
constexpr int kLaunches = 20, kReplays = 15, kMaxInputs = 14336;
constexpr size_t kPartFloats = size_t{40} << 20;

struct Buffers {
  std::byte* weights = device_array<std::byte>(kWeightBytes);
  __half* x = device_array<__half>(size_t{kMaxRows} * (kMaxInputs + 256));
  float* parts = device_array<float>(kPartFloats);
};

// Median microseconds of one product among kLaunches in a graph, each with weights that no cache has.
double product_us(Matrix matrix, int n_rows, const Buffers& buffers, cudaStream_t stream) {
  const size_t n_bytes = matrix.n_bytes();
  const size_t n_copies =
      std::min(kWeightBytes / n_bytes, std::max<size_t>(2, kMinRotation / n_bytes + 1));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kLaunches; ++i) {
    matrix.data = buffers.weights + i % n_copies * n_bytes;
    const Operand x{.data = buffers.x,
                    .padded_rows = padded(n_rows),
                    .n_inputs = padded_inputs(*matrix.format, matrix.n_in)};
    multiply(matrix, x, n_rows, buffers.parts, stream);
  }
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  std::vector<float> times;
  for (int i = 0; i < kReplays + 3; ++i) {
    float ms;
    check(cudaEventRecord(begin, stream));
    check(cudaGraphLaunch(executable, stream));
    check(cudaEventRecord(end, stream));
    check(cudaStreamSynchronize(stream));
    check(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 3) times.push_back(ms);
  }
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  std::nth_element(times.begin(), times.begin() + kReplays / 2, times.end());
  return times[kReplays / 2] * 1e3 / kLaunches;
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
constexpr int kRowCounts[] = {1, 2, 4, 8, 16, 32, 64};
constexpr ggml_type kTypes[] = {GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_MXFP4,
                                GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K};

void bench(ggml_type type, const Buffers& buffers, cudaStream_t stream) {
  std::printf("\n%s: us (GB/s)\n%-8s", ggml_type_name(type), "rows");
  for (const int n_rows : kRowCounts) std::printf("%15d", n_rows);
  for (const Shape& shape : kShapes) {
    const Matrix matrix = matrix_of(*format_of(type), shape.n_in, shape.n_out);
    std::printf("\n%-8s", shape.name);
    for (const int n_rows : kRowCounts) {
      if (size_t{static_cast<unsigned>(matrix.most_parts())} * n_rows * matrix.n_out > kPartFloats) {
        std::printf("%15s", "-");
        continue;
      }
      const double us = product_us(matrix, n_rows, buffers, stream);
      std::printf("%8.1f (%4.0f)", us, static_cast<double>(matrix.n_bytes()) / us * 1e-3);
    }
    std::fflush(stdout);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace forerun::cuda

int main(int n_args, char** args) {
  using namespace forerun::cuda;
  int n_devices = 0;
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
    std::printf("no CUDA device\n");
    return 0;
  }
  const Buffers buffers;
  fill_randomly<<<1024, 256>>>(reinterpret_cast<uint32_t*>(buffers.weights), kWeightBytes / 4);
  check(cudaDeviceSynchronize());
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  for (const ggml_type type : kTypes) {
    const auto is_type = [&](const char* name) { return std::strcmp(name, ggml_type_name(type)) == 0; };
    if (n_args == 1 || std::any_of(args + 1, args + n_args, is_type)) bench(type, buffers, stream);
  }
}
