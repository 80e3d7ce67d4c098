// How kernels are launched.
#pragma once

#include <cuda_runtime.h>

#include "model/cuda/stream.h"

namespace forerun::cuda {

// A grid of blocks of threads.
struct Grid {
  dim3 blocks;
  int threads;
  size_t shared_bytes = 0;
  int cluster = 1;  // blocks, along x
};

// Of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "say which it is");
  check(cudaDeviceGetAttribute(&value, attribute, device), "say what it has");
  return value;
}

// Whether a kernel was compiled for compute capability 9.0 or later, and the device has it.
template <typename... Params>
bool has_hopper_code(void (*kernel)(Params...)) {
  cudaFuncAttributes built{};
  check(cudaFuncGetAttributes(&built, kernel), "prepare a kernel");
  return built.ptxVersion >= 90;
}

// Launches a kernel that calls ptx::wait_dependencies() before it touches memory that others write: it
// may begin before the kernel before it has ended.
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), const Grid& grid, cudaStream_t stream, const Args&... args) {
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (has_hopper_code(kernel)) {  // else it was compiled without the instructions
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (grid.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(grid.cluster);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, args...), "start a kernel");
}

}  // namespace forerun::cuda
