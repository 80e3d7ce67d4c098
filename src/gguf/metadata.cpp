#include "gguf/metadata.h"

#include <gguf.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace forerun {
namespace {

bool is_integer(gguf_type type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64: return true;
    default: return false;
  }
}

bool is_float(gguf_type type) {
  return type == GGUF_TYPE_FLOAT32 || type == GGUF_TYPE_FLOAT64;
}

[[noreturn]] void wrong_type(std::string_view key, std::string_view wanted, gguf_type found) {
  fail(ErrorCode::kInvalidFile, "metadata key {} should be {} but is {}", key, wanted,
       gguf_type_name(found));
}

template <typename T>
T load(const void* data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

// Element `index` of an array of numbers or of a single value (index 0).
int64_t load_int(gguf_type type, const void* data, size_t index) {
  switch (type) {
    case GGUF_TYPE_UINT8: return load<uint8_t>(data, index);
    case GGUF_TYPE_INT8: return load<int8_t>(data, index);
    case GGUF_TYPE_UINT16: return load<uint16_t>(data, index);
    case GGUF_TYPE_INT16: return load<int16_t>(data, index);
    case GGUF_TYPE_UINT32: return load<uint32_t>(data, index);
    case GGUF_TYPE_INT32: return load<int32_t>(data, index);
    case GGUF_TYPE_INT64: return load<int64_t>(data, index);
    case GGUF_TYPE_BOOL: return load<int8_t>(data, index) != 0;
    default: {
      const auto value = load<uint64_t>(data, index);
      return value > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(value);
    }
  }
}

double load_float(gguf_type type, const void* data, size_t index) {
  if (type == GGUF_TYPE_FLOAT32) return load<float>(data, index);
  if (type == GGUF_TYPE_FLOAT64) return load<double>(data, index);
  return static_cast<double>(load_int(type, data, index));
}

}  // namespace

int64_t GgufMetadata::find(std::string_view key) const {
  return gguf_find_key(gguf_, std::string(key).c_str());
}

bool GgufMetadata::has(std::string_view key) const {
  return find(key) >= 0;
}

bool GgufMetadata::is_array(std::string_view key) const {
  const int64_t id = find(key);
  return id >= 0 && gguf_get_kv_type(gguf_, id) == GGUF_TYPE_ARRAY;
}

std::optional<int64_t> GgufMetadata::get_int(std::string_view key) const {
  const int64_t id = find(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(gguf_, id);
  if (!is_integer(type)) wrong_type(key, "an integer", type);
  return load_int(type, gguf_get_val_data(gguf_, id), 0);
}

std::optional<double> GgufMetadata::get_float(std::string_view key) const {
  const int64_t id = find(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(gguf_, id);
  if (!is_float(type) && !is_integer(type)) wrong_type(key, "a number", type);
  return load_float(type, gguf_get_val_data(gguf_, id), 0);
}

std::optional<bool> GgufMetadata::get_bool(std::string_view key) const {
  const int64_t id = find(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(gguf_, id);
  if (type != GGUF_TYPE_BOOL) wrong_type(key, "true or false", type);
  return gguf_get_val_bool(gguf_, id);
}

std::optional<std::string> GgufMetadata::get_string(std::string_view key) const {
  const int64_t id = find(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(gguf_, id);
  if (type != GGUF_TYPE_STRING) wrong_type(key, "a string", type);
  return gguf_get_val_str(gguf_, id);
}

std::optional<size_t> GgufMetadata::array_size(std::string_view key) const {
  const int64_t id = find(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(gguf_, id);
  if (type != GGUF_TYPE_ARRAY) wrong_type(key, "an array", type);
  return gguf_get_arr_n(gguf_, id);
}

std::optional<std::vector<int64_t>> GgufMetadata::get_int_array(std::string_view key) const {
  const auto size = array_size(key);
  if (!size) return std::nullopt;
  const int64_t id = find(key);
  const gguf_type type = gguf_get_arr_type(gguf_, id);
  if (!is_integer(type) && type != GGUF_TYPE_BOOL) wrong_type(key, "an array of integers", type);
  std::vector<int64_t> values(*size);
  const void* data = gguf_get_arr_data(gguf_, id);
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_int(type, data, i);
  return values;
}

std::optional<std::vector<double>> GgufMetadata::get_float_array(std::string_view key) const {
  const auto size = array_size(key);
  if (!size) return std::nullopt;
  const int64_t id = find(key);
  const gguf_type type = gguf_get_arr_type(gguf_, id);
  if (!is_float(type) && !is_integer(type)) wrong_type(key, "an array of numbers", type);
  std::vector<double> values(*size);
  const void* data = gguf_get_arr_data(gguf_, id);
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_float(type, data, i);
  return values;
}

std::optional<std::vector<std::string_view>> GgufMetadata::get_string_array(std::string_view key) const {
  const auto size = array_size(key);
  if (!size) return std::nullopt;
  const int64_t id = find(key);
  const gguf_type type = gguf_get_arr_type(gguf_, id);
  if (type != GGUF_TYPE_STRING) wrong_type(key, "an array of strings", type);
  std::vector<std::string_view> values(*size);
  for (size_t i = 0; i < values.size(); ++i) values[i] = gguf_get_arr_str(gguf_, id, i);
  return values;
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> keys;
  for (int64_t id = 0; id < gguf_get_n_kv(gguf_); ++id) keys.emplace_back(gguf_get_key(gguf_, id));
  return keys;
}

std::string GgufMetadata::describe(std::string_view key) const {
  const int64_t id = find(key);
  if (id < 0) return "";
  const gguf_type type = gguf_get_kv_type(gguf_, id);
  if (type == GGUF_TYPE_STRING) return gguf_get_val_str(gguf_, id);
  if (type == GGUF_TYPE_BOOL) return gguf_get_val_bool(gguf_, id) ? "true" : "false";
  if (type == GGUF_TYPE_ARRAY) {
    return fmt::format("[{} x {}]", gguf_get_arr_n(gguf_, id),
                       gguf_type_name(gguf_get_arr_type(gguf_, id)));
  }
  if (is_float(type)) return fmt::format("{}", load_float(type, gguf_get_val_data(gguf_, id), 0));
  return fmt::format("{}", load_int(type, gguf_get_val_data(gguf_, id), 0));
}

}  // namespace forerun
