// Times finding the best logits, microseconds of both kernels, beside copying all logits to the CPU.
#include <cstdio>
#include <random>

#include "model/cuda/bench_timing.h"
#include "model/cuda/best_logits.h"
#include "model/cuda/device_array.h"

namespace forerun::cuda {
namespace {

constexpr int kVocabularies[] = {49152, 128256, 262144};
constexpr int kRows[] = {1, 2, 4, 8, 16, 32, 64};
constexpr int kMostRows = 64;
constexpr int kLaunches = 20;

void time_vocabulary(int n_vocab) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(static_cast<size_t>(kMostRows) * static_cast<size_t>(n_vocab));
  for (float& logit : logits) logit = normal(random);
  const DeviceArray<float> logits_on(logits);
  const DeviceArray<LogitSums> sums(size_t{kMostRows} * kMostUnits);
  const DeviceArray<BestOfRow> best(kMostRows);
  float* here = nullptr;
  check(cudaMallocHost(&here, logits.size() * sizeof(float)), "hold what is copied");
  for (const int n_rows : kRows) {
    const RowsShape shape{.n_rows = n_rows, .n = n_vocab};
    const double found = microseconds(kLaunches, [&](int, cudaStream_t stream) {
      sum_units(logits_on.get(), shape, sums.get(), stream);
      select_best(logits_on.get(), sums.get(), shape, best.get(), stream);
    });
    const size_t n_bytes = static_cast<size_t>(n_rows) * static_cast<size_t>(n_vocab) * sizeof(float);
    const double copied = microseconds(kLaunches, [&](int, cudaStream_t stream) {
      check(cudaMemcpyAsync(here, logits_on.get(), n_bytes, cudaMemcpyDeviceToHost, stream), "copy");
    });
    std::printf("%7d tokens %3d rows  %8.1f us  copied %8.1f us\n", n_vocab, n_rows, found, copied);
  }
  cudaFreeHost(here);
}

}  // namespace
}  // namespace forerun::cuda

int main() {
  for (const int n_vocab : forerun::cuda::kVocabularies) forerun::cuda::time_vocabulary(n_vocab);
}
