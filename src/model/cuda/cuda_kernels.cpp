// Our CUDA kernels behind the seam of gpu_kernels.h.
#include <fmt/format.h>
#include <ggml-backend.h>

#include <bit>
#include <charconv>
#include <mutex>

#include "model/cuda/attention.h"
#include "model/cuda/graph_builder.h"
#include "model/cuda/product.h"
#include "model/cuda/seen_layout.h"
#include "model/cuda/stream.h"
#include "model/gpu_kernels.h"

namespace forerun {
namespace cuda {
namespace {

constexpr int kOldestGeneration = 8;        // compute capability: Ampere
constexpr size_t kStagingBytes = 64 << 20;  // of a file's rows on their way to the GPU

class CudaKernels final : public GpuKernels {
 public:
  CudaKernels(int device, int major, int minor)
      : stream_(device), name_(fmt::format("cuda sm_{}{}", major, minor)) {}
  ~CudaKernels() override { cudaFree(staging_); }

  const std::string& name() const override { return name_; }

  bool serves(const ModelConfig& config, KvType kv_type) const override {
    return attention_supports(attention_shape(config), ggml_type_of(kv_type));
  }
  bool can_multiply(ggml_type type) const override { return format_of(type) != nullptr; }

  size_t packed_bytes(const GpuMatrix& matrix) const override {
    return static_cast<size_t>(matrix.n) *
           matrix_of(*format_of(matrix.type), matrix.n_in, matrix.n_out).n_bytes();
  }
  void pack(const std::byte* rows, const GpuMatrix& matrix) override;

  int filled_up(int n_rows) const override {
    return n_rows == 0 ? 0 : static_cast<int>(std::bit_ceil(static_cast<unsigned>(n_rows)));
  }
  std::unique_ptr<GraphBuilder> make_builder(const GraphParts& parts) override {
    return std::make_unique<CudaGraphBuilder>(parts, stream_);
  }

  size_t seen_bytes(const ModelConfig& config, int n_rows, int n_listed) const override {
    return SeenLayout(config, n_rows, n_listed).n_bytes();
  }
  int attention_tiles(const ModelConfig& config, KvType kv_type,
                      const VisibleRows& rows) const override {
    return cuda::attention_tiles(config, kv_type, rows);
  }
  int attention_tiles(const ModelConfig& config, KvType kv_type, int n_rows) const override {
    return cuda::attention_tiles(config, kv_type, n_rows);
  }
  void fill_seen(const ModelConfig& config, const VisibleRows& rows, int n_listed, int n_tiles,
                 std::byte* to) const override {
    SeenLayout(config, static_cast<int>(rows.all().size()), n_listed).fill(rows, n_tiles, to);
  }

  void upload(void* to, std::span<const std::byte> from) override { stream_.upload(to, from); }

 private:
  void make_staging(size_t n_bytes);

  Stream stream_;
  std::string name_;
  std::mutex mutex_;  // of the staging memory
  std::byte* staging_ = nullptr;
  size_t n_staging_ = 0;
};

void CudaKernels::pack(const std::byte* rows, const GpuMatrix& matrix) {
  const Format& format = *format_of(matrix.type);
  const auto row_bytes = static_cast<size_t>(ggml_row_size(matrix.type, matrix.n_in));
  const size_t matrix_bytes = matrix_of(format, matrix.n_in, matrix.n_out).n_bytes();
  // Whole tiles at a time, or whole matrices where there are several small ones.
  const auto tile = static_cast<int64_t>(format.tile_rows);
  const int64_t n_rows =
      std::max<int64_t>(1, static_cast<int64_t>(kStagingBytes / row_bytes) / tile) * tile;
  const int64_t n_matrices = std::max<int64_t>(1, n_rows / matrix.n_out);
  const size_t tile_bytes = matrix_of(format, matrix.n_in, tile).n_bytes();
  const std::scoped_lock lock(mutex_);
  stream_.use_device();
  make_staging(std::max(kStagingBytes, row_bytes * static_cast<size_t>(tile)));
  for (int64_t first = 0; first < matrix.n; first += n_matrices) {
    const int64_t n_together = std::min(n_matrices, matrix.n - first);
    const std::byte* file = rows + static_cast<size_t>(first * matrix.n_out) * row_bytes;
    std::byte* packed = matrix.data + static_cast<size_t>(first) * matrix_bytes;
    for (int64_t row = 0; row < matrix.n_out; row += n_rows) {
      const int64_t n = std::min(n_rows, matrix.n_out - row);
      const size_t n_bytes = static_cast<size_t>(n) * row_bytes;  // of each matrix
      check(cudaMemcpyAsync(staging_, file + static_cast<size_t>(row) * row_bytes,
                            static_cast<size_t>(n_together) * n_bytes, cudaMemcpyHostToDevice,
                            stream_.get()),
            "load weights");
      for (int64_t i = 0; i < n_together; ++i) {
        cuda::pack(format, staging_ + static_cast<size_t>(i) * n_bytes, matrix.n_in, n,
                   packed + static_cast<size_t>(i) * matrix_bytes +
                       static_cast<size_t>(row / tile) * tile_bytes,
                   stream_.get());
      }
      check(cudaStreamSynchronize(stream_.get()), "load weights");
    }
  }
}

// Room for so many bytes of a file.
void CudaKernels::make_staging(size_t n_bytes) {
  if (n_bytes <= n_staging_) return;
  cudaFree(std::exchange(staging_, nullptr));
  n_staging_ = 0;
  check(cudaMalloc(&staging_, n_bytes), "hold what is loaded");
  n_staging_ = n_bytes;
}

}  // namespace
}  // namespace cuda

std::unique_ptr<GpuKernels> make_gpu_kernels(ggml_backend_dev_t device) {
  // ggml numbers its devices as CUDA does: CUDA0, CUDA1.
  constexpr std::string_view kPrefix = "CUDA";
  const std::string_view name = ggml_backend_dev_name(device);
  int index = 0;
  if (!name.starts_with(kPrefix) ||
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), index).ec !=
          std::errc{}) {
    return nullptr;
  }
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess ||
      major < cuda::kOldestGeneration) {
    return nullptr;
  }
  return std::make_unique<cuda::CudaKernels>(index, major, minor);
}

}  // namespace forerun
