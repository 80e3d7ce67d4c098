// Attention over F16 caches.
#include "model/cuda/attention_launch.cuh"

namespace forerun::cuda {

void attend_f16(const AttentionWork& work, cudaStream_t stream) {
  switch (work.shape.head_dim) {
    case 64: return attend_with<HalfCells<64>>(work, stream);
    case 80: return attend_with<HalfCells<80>>(work, stream);
    case 96: return attend_with<HalfCells<96>>(work, stream);
    case 112: return attend_with<HalfCells<112>>(work, stream);
    case 128: return attend_with<HalfCells<128>>(work, stream);
    case 256: return attend_with<HalfCells<256>>(work, stream);
  }
}

}  // namespace forerun::cuda
