#include "model/config_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"

namespace forerun {
namespace {

float checked_float(const std::string& key, double value) {
  if (!std::isfinite(value) ||
      std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    fail(ErrorCode::kInvalidFile, "metadata key {} is not a finite number", key);
  }
  return static_cast<float>(value);
}

int checked_count(const std::string& key, int64_t value) {
  if (value < 1 || value > ConfigReader::kMaxCount)
    fail(ErrorCode::kInvalidFile, "metadata key {} has the senseless value {}", key, value);
  return static_cast<int>(value);
}

}  // namespace

ConfigReader::ConfigReader(const GgufMetadata& metadata, std::string architecture)
    : metadata_(metadata), architecture_(std::move(architecture)) {}

int ConfigReader::get_count(const std::string& name) const {
  const auto value = metadata_.get_int(key(name));
  if (!value) fail(ErrorCode::kInvalidFile, "metadata key {} is missing", key(name));
  if (*value < 1 || *value > kMaxCount) {
    fail(ErrorCode::kInvalidFile, "metadata key {} has the senseless value {}", key(name), *value);
  }
  return static_cast<int>(*value);
}

int ConfigReader::get_count_or(const std::string& name, int fallback) const {
  return metadata_.has(key(name)) ? get_count(name) : fallback;
}

int ConfigReader::get_count_or_none(const std::string& name) const {
  return metadata_.get_int(key(name)).value_or(0) == 0 ? 0 : get_count(name);
}

float ConfigReader::get_float(const std::string& name) const {
  const auto value = metadata_.get_float(key(name));
  if (!value) fail(ErrorCode::kInvalidFile, "metadata key {} is missing", key(name));
  return checked_float(key(name), *value);
}

float ConfigReader::get_float_or(const std::string& name, float fallback) const {
  return metadata_.has(key(name)) ? get_float(name) : fallback;
}

int ConfigReader::get_uniform_count(const std::string& name, std::optional<int> fallback,
                                    const std::function<bool(size_t layer)>& of) const {
  const std::string key = this->key(name);
  if (!metadata_.is_array(key)) {
    return fallback ? get_count_or(name, *fallback) : get_count(name);
  }
  const auto values = metadata_.get_int_array(key).value();
  std::vector<int64_t> found;
  for (size_t layer = 0; layer < values.size(); ++layer) {
    if (!of || of(layer)) found.push_back(values[layer]);
  }
  if (found.empty() || std::ranges::any_of(found, [&](int64_t v) { return v != found[0]; }))
    fail(ErrorCode::kUnsupported, "{} differs between layers, which forerun does not support", key);
  return checked_count(key, found[0]);
}

std::vector<int> ConfigReader::get_layer_counts(const std::string& name, int n_layers) const {
  const std::string key = this->key(name);
  std::vector<int> counts(static_cast<size_t>(n_layers));
  if (!metadata_.is_array(key)) {
    std::ranges::fill(counts, get_count(name));
    return counts;
  }
  const auto values = metadata_.get_int_array(key).value();
  if (values.size() < counts.size()) {
    fail(ErrorCode::kInvalidFile, "metadata key {} has {} entries for {} layers", key, values.size(),
         n_layers);
  }
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = checked_count(key, values[i]);
  return counts;
}

}  // namespace forerun
