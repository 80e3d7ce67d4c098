// Typed access to the key-value pairs of a GGUF that never aborts.
//
// ggml's own getters abort on a wrong type. Here an absent key is nullopt, and a
// key of the wrong kind throws Error{kInvalidFile} with its name. Integers of any
// width read as int64_t, floats of any width as double.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct gguf_context;

namespace forerun {

// A view: the gguf_context must outlive it. Const and thread-safe.
class GgufMetadata {
 public:
  explicit GgufMetadata(const gguf_context* gguf) : gguf_(gguf) {}

  const gguf_context* raw() const { return gguf_; }

  bool has(std::string_view key) const;
  bool is_array(std::string_view key) const;

  std::optional<int64_t> get_int(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;  // integers count too
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;

  // Number of elements of an array; nullopt if the key is absent.
  std::optional<size_t> array_size(std::string_view key) const;
  std::optional<std::vector<int64_t>> get_int_array(std::string_view key) const;  // bools count too
  std::optional<std::vector<double>> get_float_array(std::string_view key) const;
  // The views live as long as the gguf_context.
  std::optional<std::vector<std::string_view>> get_string_array(std::string_view key) const;

  // All keys in file order, and the value of one as text (arrays shortened).
  std::vector<std::string> keys() const;
  std::string describe(std::string_view key) const;

 private:
  int64_t find(std::string_view key) const;

  const gguf_context* gguf_;
};

}  // namespace forerun
