// Reads hyperparameters from a file's metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gguf/metadata.h"

namespace forerun {

// Reads keys of the form "<architecture>.<name>".
class ConfigReader {
 public:
  // Counts beyond this are damage, and keeping them below it keeps products of two of them inside 64
  // bits.
  static constexpr int64_t kMaxCount = int64_t{1} << 30;

  ConfigReader(const GgufMetadata& metadata, std::string architecture);

  int get_count(const std::string& name) const;  // required; 1 or more
  int get_count_or(const std::string& name, int fallback) const;
  int get_count_or_none(const std::string& name) const;  // 0 where it is missing, or 0
  float get_float(const std::string& name) const;        // required
  float get_float_or(const std::string& name, float fallback) const;
  // A value that some files store once per layer: equal in all layers, or in those `of` a kind.
  int get_uniform_count(const std::string& name, std::optional<int> fallback,
                        const std::function<bool(size_t layer)>& of = nullptr) const;
  // The same where each layer may have its own.
  std::vector<int> get_layer_counts(const std::string& name, int n_layers) const;
  std::string key(const std::string& name) const { return architecture_ + "." + name; }
  const GgufMetadata& metadata() const { return metadata_; }

 private:
  GgufMetadata metadata_;
  std::string architecture_;
};

}  // namespace forerun
