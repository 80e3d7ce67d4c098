#include "model/cuda/product_launch.cuh"
#include "model/cuda/weights_float.cuh"

namespace forerun::cuda {

std::span<const FormatKernels> float_kernels() {
  static const FormatKernels kernels[] = {
      kernels_of<F16>(GGML_TYPE_F16),
      kernels_of<BF16>(GGML_TYPE_BF16),
  };
  return kernels;
}

}  // namespace forerun::cuda
