#include "model/kv_type.h"

#include "core/error.h"

namespace forerun {

ggml_type ggml_type_of(KvType type) {
  switch (type) {
    case KvType::kF16: return GGML_TYPE_F16;
    case KvType::kF32: return GGML_TYPE_F32;
    case KvType::kQ8_0: return GGML_TYPE_Q8_0;
  }
  return GGML_TYPE_F16;
}

std::optional<KvType> parse_kv_type(std::string_view name) {
  for (const KvType type : {KvType::kF16, KvType::kF32, KvType::kQ8_0}) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

KvType kv_type_named(std::string_view name) {
  if (const auto type = parse_kv_type(name)) return *type;
  fail(ErrorCode::kInvalidArgument,
       "the type of the cache (--kv-type) must be f16, f32 or q8_0, not '{}'", name);
}

std::string_view to_string(KvType type) {
  switch (type) {
    case KvType::kF16: return "f16";
    case KvType::kF32: return "f32";
    case KvType::kQ8_0: return "q8_0";
  }
  return "";
}

}  // namespace forerun
