// Memory of the GPU in tests and benchmarks.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "core/check.h"

namespace forerun::cuda {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : n_(n) {
    CHECK(cudaMalloc(&data_, (n > 0 ? n : 1) * sizeof(T)) == cudaSuccess);
    CHECK(cudaMemset(data_, 0xff, n * sizeof(T)) == cudaSuccess);  // NaN, so that gaps show
  }
  explicit DeviceArray(const std::vector<T>& from) : DeviceArray(from.size()) {
    CHECK(cudaMemcpy(data_, from.data(), n_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> to(n_);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaMemcpy(to.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return to;
  }

 private:
  size_t n_;
  T* data_ = nullptr;
};

inline bool has_device() {
  int n = 0;
  return cudaGetDeviceCount(&n) == cudaSuccess && n > 0;
}

}  // namespace forerun::cuda
