#include "model/cuda/product_launch.cuh"
#include "model/cuda/weights_blocks.cuh"

namespace forerun::cuda {

std::span<const FormatKernels> block_kernels() {
  static const FormatKernels kernels[] = {
      kernels_of<Q8_0>(GGML_TYPE_Q8_0), kernels_of<Q4_0>(GGML_TYPE_Q4_0),
      kernels_of<Q4_1>(GGML_TYPE_Q4_1), kernels_of<Q5_0>(GGML_TYPE_Q5_0),
      kernels_of<Q5_1>(GGML_TYPE_Q5_1), kernels_of<MXFP4>(GGML_TYPE_MXFP4),
  };
  return kernels;
}

}  // namespace forerun::cuda
