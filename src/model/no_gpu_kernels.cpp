// In place of cuda/, in builds without it.
#include "model/gpu_kernels.h"

namespace forerun {

std::unique_ptr<GpuKernels> make_gpu_kernels(ggml_backend_dev_t) {
  return nullptr;
}

}  // namespace forerun
