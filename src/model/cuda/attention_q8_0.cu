// Attention over Q8_0 caches.
#include "model/cuda/attention_launch.cuh"

namespace forerun::cuda {

void attend_q8_0(const AttentionWork& work, cudaStream_t stream) {
  switch (work.shape.head_dim) {
    case 64: return attend_with<Q8Cells<64>>(work, stream);
    case 96: return attend_with<Q8Cells<96>>(work, stream);
    case 128: return attend_with<Q8Cells<128>>(work, stream);
    case 256: return attend_with<Q8Cells<256>>(work, stream);
  }
}

}  // namespace forerun::cuda
