#include "text/vocabulary_keys.h"

#include <algorithm>

#include "core/error.h"

namespace forerun::vocabulary_keys {

std::string in_message(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 40)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool printable = byte >= 0x20 && byte < 0x7F;
    out += printable ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out + (text.size() > 40 ? "...'" : "'");
}

std::optional<int64_t> find_typed(const gguf_context* gguf, const char* key, gguf_type type) {
  const int64_t id = gguf_find_key(gguf, key);
  if (id < 0) return std::nullopt;
  const gguf_type found = gguf_get_kv_type(gguf, id);
  if (found != type) {
    fail(ErrorCode::kInvalidFile, "metadata key {} should be of type {} but is {}", key,
         gguf_type_name(type), gguf_type_name(found));
  }
  return id;
}

std::optional<int64_t> find_array(const gguf_context* gguf, const char* key,
                                  std::initializer_list<gguf_type> types) {
  const auto id = find_typed(gguf, key, GGUF_TYPE_ARRAY);
  if (!id) return std::nullopt;
  const gguf_type found = gguf_get_arr_type(gguf, *id);
  if (std::find(types.begin(), types.end(), found) == types.end()) {
    fail(ErrorCode::kInvalidFile, "metadata key {} should be an array of {} but is one of {}", key,
         gguf_type_name(*types.begin()), gguf_type_name(found));
  }
  if (gguf_get_arr_n(gguf, *id) > static_cast<size_t>(INT32_MAX)) {
    fail(ErrorCode::kInvalidFile, "metadata key {} is too long", key);
  }
  return id;
}

const void* per_token(const gguf_context* gguf, const char* key, std::optional<int64_t> id,
                      size_t n_tokens) {
  if (!id) return nullptr;
  if (gguf_get_arr_n(gguf, *id) < n_tokens) {
    fail(ErrorCode::kInvalidFile, "{} has {} entries for {} tokens", key, gguf_get_arr_n(gguf, *id),
         n_tokens);
  }
  return gguf_get_arr_data(gguf, *id);
}

std::string_view string_value(const gguf_context* gguf, const char* key) {
  const auto id = find_typed(gguf, key, GGUF_TYPE_STRING);
  return id ? gguf_get_val_str(gguf, *id) : "";
}

bool flag_value(const gguf_context* gguf, const char* key, bool otherwise) {
  const auto id = find_typed(gguf, key, GGUF_TYPE_BOOL);
  return id ? gguf_get_val_bool(gguf, *id) : otherwise;
}

}  // namespace forerun::vocabulary_keys
