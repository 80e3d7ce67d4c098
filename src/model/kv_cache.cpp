#include "model/kv_cache.h"

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

ggml_type ggml_type_of(KvType type) {
  switch (type) {
    case KvType::kF16: return GGML_TYPE_F16;
    case KvType::kF32: return GGML_TYPE_F32;
    case KvType::kQ8_0: return GGML_TYPE_Q8_0;
  }
  return GGML_TYPE_F16;
}

int round_up(int n, int multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

std::optional<KvType> parse_kv_type(std::string_view name) {
  for (const KvType type : {KvType::kF16, KvType::kF32, KvType::kQ8_0}) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

std::string_view to_string(KvType type) {
  switch (type) {
    case KvType::kF16: return "f16";
    case KvType::kF32: return "f32";
    case KvType::kQ8_0: return "q8_0";
  }
  return "";
}

KvCache::KvCache(const ModelConfig& config, const Device& device, const KvOptions& options)
    : type_(options.type), cells_(round_up(options.n_cells, kKvGranularity)) {
  const ggml_type type = ggml_type_of(options.type);
  if (config.head_dim % ggml_blck_size(type) != 0) {
    fail(ErrorCode::kUnsupported,
         "a {} cache needs heads of a multiple of {}; this model's have {}: use f16",
         to_string(options.type), ggml_blck_size(type), config.head_dim);
  }
  const auto n_tensors = static_cast<size_t>(2 * config.n_layers);
  context_.reset(ggml_init(
      {.mem_size = (n_tensors + 1) * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  const int64_t n_cells = cells_.n_cells();
  const size_t alignment = ggml_backend_buft_get_alignment(device.default_buffer_type());
  size_t n_bytes = 0;
  for (int layer = 0; layer < config.n_layers; ++layer) {
    for (auto* tensors : {&keys_, &values_}) {
      ggml_tensor* tensor = ggml_new_tensor_2d(context_.get(), type, config.n_embd_kv(), n_cells);
      tensors->push_back(tensor);
      n_bytes +=
          GGML_PAD(ggml_backend_buft_get_alloc_size(device.default_buffer_type(), tensor), alignment);
    }
  }
  memory_ = device.allocate_zeroed(n_bytes, fmt::format("a context of {} tokens ({}; a smaller one: -c)",
                                                        n_cells, to_string(options.type)));
  ggml_tallocr allocator = ggml_tallocr_new(memory_.buffer());
  for (int layer = 0; layer < config.n_layers; ++layer) {
    CHECK(ggml_tallocr_alloc(&allocator, keys(layer)) == GGML_STATUS_SUCCESS);
    CHECK(ggml_tallocr_alloc(&allocator, values(layer)) == GGML_STATUS_SUCCESS);
  }
}

}  // namespace forerun
