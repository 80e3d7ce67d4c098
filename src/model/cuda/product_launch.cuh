// Launches of the kernels of one weight type, and the table in which product.cu finds them.
#pragma once

#include <algorithm>
#include <array>
#include <mutex>
#include <span>

#include "core/check.h"
#include "model/cuda/experts_kernel.cuh"
#include "model/cuda/launch.cuh"
#include "model/cuda/product.h"
#include "model/cuda/product_kernel.cuh"
#include "model/cuda/product_wide_kernel.cuh"

namespace forerun::cuda {

struct FormatKernels {
  Format format;
  void (*pack)(const std::byte* file_rows, int64_t n_in, int64_t n_rows, std::byte* packed,
               cudaStream_t stream);
  void (*multiply)(const ProductWork& work, cudaStream_t stream);
  void (*multiply_experts)(const ExpertsWork& work, cudaStream_t stream);
  bool (*has_wide)();  // for the current device: whether it may multiply 64 or 128 rows at once
  bool adds_in_warpgroups;
  void (*multiply_wide)(const WideWork& work, int n_rows_at_once, cudaStream_t stream);
};
std::span<const FormatKernels> float_kernels();  // product_float.cu
std::span<const FormatKernels> block_kernels();  // product_blocks.cu
std::span<const FormatKernels> k_kernels();      // product_k.cu
// nullptr: there are none.
const FormatKernels* kernels_of_type(ggml_type type);

// --- packing ---

// One warp per 16 outputs and 32 inputs. `packed` is zeros.
template <typename W>
__global__ void pack_rows(const uint8_t* file_rows, int64_t n_in, int64_t n_rows, std::byte* packed) {
  const int64_t n_blocks = (n_in + 31) / 32, n_stages = (n_in + W::kDepth - 1) / W::kDepth;
  const int64_t unit = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  const int64_t tile = unit / n_blocks, block = unit % n_blocks;
  const int lane = threadIdx.x % 32;
  const int64_t stage = tile / W::kAllTiles * n_stages + block / W::kBlocks;
  for (int row = 0; row < 2; ++row) {
    const int64_t output = tile * 16 + lane / 4 + row * 8;
    if (output >= n_rows) continue;
    const uint8_t* from = file_rows + output * (n_in / W::kFileBlock) * W::kFileBytes;
    const Place to{.stage = packed + stage * W::kStageBytes,
                   .block = static_cast<int>(block % W::kBlocks),
                   .tile = static_cast<int>(tile % W::kAllTiles),
                   .lane = lane,
                   .row = row};
    if constexpr (W::kFileBlock == 1) {
      const int n = static_cast<int>(min(n_in - block * 32, int64_t{32}));
      W::pack(reinterpret_cast<const uint16_t*>(from) + block * 32, n, to);
    } else {
      constexpr int kParts = W::kFileBlock / 32;
      W::pack(from + block / kParts * W::kFileBytes, static_cast<int>(block % kParts), to);
    }
  }
}

template <typename W>
void launch_pack(const std::byte* file_rows, int64_t n_in, int64_t n_rows, std::byte* packed,
                 cudaStream_t stream) {
  CHECK(n_in % W::kFileBlock == 0);
  const int64_t n_units = (n_rows + 15) / 16 * ((n_in + 31) / 32);
  const auto n_blocks = static_cast<unsigned>((n_units * 32 + kThreads - 1) / kThreads);
  pack_rows<W><<<n_blocks, kThreads, 0, stream>>>(reinterpret_cast<const uint8_t*>(file_rows), n_in,
                                                  n_rows, packed);
  check(cudaGetLastError(), "pack weights");
}

// --- products ---

// Two of them on an SM, as measured on an H200, which has 228 KB.
constexpr int kMaxRingBytes = 106 * 1024;

// Something that is made once for every device.
template <typename T>
class PerDevice {
 public:
  // What make() returned for the current device.
  template <typename Make>
  const T& get(Make make) {
    int device = 0;
    check(cudaGetDevice(&device), "say which it is");
    CHECK(device < kMaxDevices);
    std::call_once(is_made_[device], [&] { made_[device] = make(); });
    return made_[device];
  }

 private:
  static constexpr int kMaxDevices = 64;
  std::array<std::once_flag, kMaxDevices> is_made_;
  std::array<T, kMaxDevices> made_{};
};

// How many stages the ring of a kernel has on the current device, for which it is prepared. Two blocks
// on an SM if they have room.
template <typename W, int NT, auto kKernel>
int prepare() {
  constexpr int kBytes = RingStage<W, NT>::kBytes;
  constexpr int kBarrierBytes = 2 * kMaxRing * 8 + NT * 8 * 4;  // and the columns of an item
  const int of_sm = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  const int reserved = device_attribute(cudaDevAttrReservedSharedMemoryPerBlock) + kBarrierBytes;
  const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - kBarrierBytes;
  const int room = std::min(kMaxRingBytes, of_sm / 2 - reserved);
  const int n_ring = std::clamp(room / kBytes, kMinRing, kMaxRing);
  CHECK(n_ring * kBytes <= most);
  check(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n_ring * kBytes),
        "prepare a product");
  return n_ring;
}

template <typename W, int NT>
void launch_multiply(ProductWork work, cudaStream_t stream) {
  static PerDevice<int> n_ring;
  work.n_ring = n_ring.get(prepare<W, NT, multiply_rows<W, NT>>);
  launch(multiply_rows<W, NT>,
         {.blocks = dim3(static_cast<unsigned>(work.cut.n_runs)),
          .threads = kThreads,
          .shared_bytes = static_cast<size_t>(work.n_ring) * RingStage<W, NT>::kBytes},
         stream, work);
}

template <typename W, int NT>
void launch_multiply_experts(ExpertsWork work, cudaStream_t stream) {
  constexpr auto kKernel = multiply_expert_rows<W, NT>;
  static PerDevice<int> n_ring;
  work.n_ring = n_ring.get(prepare<W, NT, kKernel>);
  const int n_parts = (work.cut.n_runs + work.runs_of_block - 1) / work.runs_of_block;
  launch(kKernel,
         {.blocks = dim3(static_cast<unsigned>(n_parts), static_cast<unsigned>(work.n_matrices),
                         static_cast<unsigned>(work.n_items)),
          .threads = kThreads,
          .shared_bytes = static_cast<size_t>(work.n_ring) * RingStage<W, NT>::kBytes},
         stream, work);
}

template <typename W>
void launch_multiply_by_rows(const ProductWork& work, cudaStream_t stream) {
  switch (work.padded_rows) {
    case 8: return launch_multiply<W, 1>(work, stream);
    case 16: return launch_multiply<W, 2>(work, stream);
    case 32: return launch_multiply<W, 4>(work, stream);
    default: return launch_multiply<W, 8>(work, stream);
  }
}

template <typename W>
void launch_multiply_experts_by_width(const ExpertsWork& work, cudaStream_t stream) {
  switch (work.width) {
    case 8: return launch_multiply_experts<W, 1>(work, stream);
    case 16: return launch_multiply_experts<W, 2>(work, stream);
    case 32: return launch_multiply_experts<W, 4>(work, stream);
    default: return launch_multiply_experts<W, 8>(work, stream);
  }
}

// --- products of many rows ---

template <typename W>
bool has_wide() {
  static PerDevice<bool> has;
  return has.get([] {
    return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= kWideSharedBytes &&
           has_hopper_code(multiply_wide<W, 1>);
  });
}

template <typename W, int kOperands>
void launch_multiply_wide(const WideWork& work, cudaStream_t stream) {
  using Shape = WideShape<W, kOperands>;
  static PerDevice<bool> is_prepared;
  is_prepared.get([] {
    check(cudaFuncSetAttribute(multiply_wide<W, kOperands>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               Shape::kSharedBytes),
          "prepare a product");
    return true;
  });
  const int n_blocks = (work.n_rows + Shape::kRows - 1) / Shape::kRows;
  const int n_parts = (work.cut.n_runs + work.runs_of_block - 1) / work.runs_of_block;
  launch(multiply_wide<W, kOperands>,
         {.blocks = dim3(static_cast<unsigned>(n_blocks), static_cast<unsigned>(n_parts)),
          .threads = Shape::kThreads,
          .shared_bytes = Shape::kSharedBytes},
         stream, work);
}

template <typename W>
void launch_multiply_wide_by_rows(const WideWork& work, int n_rows_at_once, cudaStream_t stream) {
  if (n_rows_at_once == kMaxRows) return launch_multiply_wide<W, 1>(work, stream);
  CHECK(n_rows_at_once == 2 * kMaxRows);
  launch_multiply_wide<W, 2>(work, stream);
}

template <typename W>
FormatKernels kernels_of(ggml_type type) {
  return {.format = {.type = type,
                     .tile_rows = W::kOutputs,
                     .stage_depth = W::kDepth,
                     .stage_bytes = W::kStageBytes},
          .pack = launch_pack<W>,
          .multiply = launch_multiply_by_rows<W>,
          .multiply_experts = launch_multiply_experts_by_width<W>,
          .has_wide = has_wide<W>,
          .adds_in_warpgroups = W::kWarpgroups == Warpgroups::kSums,
          .multiply_wide = launch_multiply_wide_by_rows<W>};
}

}  // namespace forerun::cuda
