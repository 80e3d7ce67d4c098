#include "support/model_files.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace forerun::test {
namespace {

constexpr std::string_view kFirstPart = "-00001-of-";

std::filesystem::path models_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "forerun/models";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / ".cache/forerun/models";
}

// The model a file belongs to; empty for what is none, or not its first part.
std::string model_name(const std::filesystem::path& file) {
  if (file.extension() != ".gguf") return "";
  const std::string stem = file.stem().string();
  const size_t part = stem.find("-of-0");
  if (part == std::string::npos) return stem;
  const size_t first = stem.find(kFirstPart);
  return first == std::string::npos ? "" : stem.substr(0, first);
}

}  // namespace

std::filesystem::path model_file(const std::string& name) {
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder(), ec)) {
    if (model_name(entry.path()) == name) return entry.path();
  }
  fail(ErrorCode::kNotFound, "no model '{}' in {}: run 'make models'", name, models_folder().string());
}

std::vector<std::string> tiny_model_names() {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder(), ec)) {
    const std::string name = model_name(entry.path());
    if (name.starts_with("tiny-")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace forerun::test
