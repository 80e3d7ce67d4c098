// The types of cached keys and values.
#pragma once

#include <ggml.h>

#include <optional>
#include <string_view>

namespace forerun {

enum class KvType { kF16, kF32, kQ8_0 };

std::optional<KvType> parse_kv_type(std::string_view name);  // "f16", "f32", "q8_0"
// The same, or throws Error{kInvalidArgument}.
KvType kv_type_named(std::string_view name);
std::string_view to_string(KvType type);
ggml_type ggml_type_of(KvType type);

}  // namespace forerun
