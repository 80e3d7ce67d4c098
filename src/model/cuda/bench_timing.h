// Timing of kernels in benchmarks.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "model/cuda/stream.h"

namespace forerun::cuda {

// Median microseconds of one of n_calls calls, which are replayed as a CUDA graph.
inline double microseconds(int n_calls, const std::function<void(int call, cudaStream_t)>& launch) {
  constexpr int kReplays = 15, kWarmUps = 3;
  const Stream stream(0);
  const CapturedGraph graph = stream.capture([&] {
    for (int call = 0; call < n_calls; ++call) launch(call, stream.get());
  });
  check(cudaDeviceSynchronize(), "fill its memory");  // which other streams do
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "measure time");
  check(cudaEventCreate(&end), "measure time");
  std::vector<float> times;
  for (int i = 0; i < kWarmUps + kReplays; ++i) {
    float ms = 0;
    check(cudaEventRecord(begin, stream.get()), "measure time");
    check(cudaGraphLaunch(graph.get(), stream.get()), "compute");
    check(cudaEventRecord(end, stream.get()), "measure time");
    check(cudaStreamSynchronize(stream.get()), "compute");
    check(cudaEventElapsedTime(&ms, begin, end), "measure time");
    if (i >= kWarmUps) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + kReplays / 2, times.end());
  return times[kReplays / 2] * 1e3 / n_calls;
}

}  // namespace forerun::cuda
