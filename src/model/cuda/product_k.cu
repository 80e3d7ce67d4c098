#include "model/cuda/product_launch.cuh"
#include "model/cuda/weights_k.cuh"

namespace forerun::cuda {

std::span<const FormatKernels> k_kernels() {
  static const FormatKernels kernels[] = {
      kernels_of<Q4_K>(GGML_TYPE_Q4_K),
      kernels_of<Q5_K>(GGML_TYPE_Q5_K),
      kernels_of<Q6_K>(GGML_TYPE_Q6_K),
  };
  return kernels;
}

}  // namespace forerun::cuda
