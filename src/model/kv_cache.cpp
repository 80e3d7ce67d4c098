#include "model/kv_cache.h"

#include <cstdint>

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

// More than any memory holds, and small enough for arithmetic on cells to stay in an int.
constexpr int kMaxCells = 1 << 30;

}  // namespace

int KvCache::n_cells_for(int n_cells) {
  if (n_cells < 1) {
    fail(ErrorCode::kInvalidArgument, "a context needs room for at least one token, not {}", n_cells);
  }
  if (n_cells > kMaxCells) {
    fail(ErrorCode::kOutOfMemory, "a context of {} tokens is too large (a smaller one: -c)", n_cells);
  }
  return (n_cells + kKvGranularity - 1) / kKvGranularity * kKvGranularity;
}

KvCache::KvCache(const ModelConfig& config, const ModelPart& part, const KvOptions& options)
    : type_(options.type), memory_(allocate(config, part, n_cells_for(options.n_cells))) {}

size_t KvCache::cell_bytes(const ModelConfig& config, KvType type) {
  return ggml_row_size(ggml_type_of(type), config.n_cell_numbers());
}

DeviceMemory KvCache::allocate(const ModelConfig& config, const ModelPart& part, int n_cells) {
  const ggml_type type = ggml_type_of(type_);
  for (const HeadsConfig& heads : {config.heads, config.window_heads.value_or(config.heads)}) {
    if (heads.dim % ggml_blck_size(type) == 0) continue;
    fail(ErrorCode::kUnsupported,
         "a {} cache needs heads of a multiple of {}; this model's have {}: use f16", to_string(type_),
         ggml_blck_size(type), heads.dim);
  }
  const auto n_tensors = static_cast<size_t>(2 * config.n_layers);
  context_.reset(ggml_init(
      {.mem_size = (n_tensors + 1) * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  ggml_backend_buffer_type_t memory_type = part.device->default_buffer_type();
  const size_t alignment = ggml_backend_buft_get_alignment(memory_type);
  size_t n_bytes = 0;
  for (int layer = 0; layer < config.n_layers; ++layer) {
    for (auto* tensors : {&keys_, &values_}) {
      if (!part.has_attention(layer)) {
        tensors->push_back(nullptr);
        continue;
      }
      if (!config.has_cells(layer)) {
        tensors->push_back((*tensors)[static_cast<size_t>(config.cells_layer(layer))]);
        continue;
      }
      if (config.latent.n > 0 && tensors == &values_) {
        tensors->push_back(keys_.back());
        continue;
      }
      ggml_tensor* tensor =
          ggml_new_tensor_2d(context_.get(), type, config.heads_of(layer).n_embd_kv(), n_cells);
      tensors->push_back(tensor);
      const size_t n_tensor_bytes =
          GGML_PAD(ggml_backend_buft_get_alloc_size(memory_type, tensor), alignment);
      n_bytes = n_tensor_bytes > SIZE_MAX - n_bytes ? SIZE_MAX : n_bytes + n_tensor_bytes;
    }
  }
  if (n_bytes == 0) return {};
  DeviceMemory memory = part.device->allocate_zeroed(
      n_bytes, fmt::format("a context of {} tokens ({}; a smaller one: -c)", n_cells, to_string(type_)));
  ggml_tallocr allocator = ggml_tallocr_new(memory.buffer());
  for (int layer = 0; layer < config.n_layers; ++layer) {
    if (!part.has_attention(layer) || !config.has_cells(layer)) continue;
    CHECK(ggml_tallocr_alloc(&allocator, keys(layer)) == GGML_STATUS_SUCCESS);
    if (config.latent.n > 0) continue;
    CHECK(ggml_tallocr_alloc(&allocator, values(layer)) == GGML_STATUS_SUCCESS);
  }
  return memory;
}

}  // namespace forerun
