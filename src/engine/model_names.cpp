#include "engine/model_names.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "core/error.h"

namespace forerun {
namespace {

constexpr std::string_view kSplitSuffix = "-00001-of-";

struct KnownModel {
  std::string_view prefix;   // of its name
  std::string_view command;  // {}: its name
};
// The first that matches a missing name tells how to get it.
constexpr std::array kKnownModels = {
    KnownModel{"smollm2-wide", "scripts/models.py make {}"},
    KnownModel{"random-", "scripts/models.py make {}"},
    KnownModel{"smollm2-", "make models"},
    KnownModel{"smollm2", "scripts/models.py fetch {}"},
    KnownModel{"gemma3-270m", "scripts/models.py fetch {}"},
    KnownModel{"tiny-", "make models"},
};

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".gguf");
}

// The name a file of the models folder goes by; nullopt if it is none.
std::optional<std::string> name_of(const std::filesystem::path& file) {
  if (file.extension() != ".gguf") return std::nullopt;
  std::string name = file.stem().string();
  const size_t split = name.find(kSplitSuffix);
  if (split != std::string::npos) return name.substr(0, split);
  const bool later_part = name.find("-of-") != std::string::npos;
  return later_part ? std::nullopt : std::optional(name);
}

std::optional<std::filesystem::path> find_by_name(const std::string& name) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder(), ignored)) {
    if (name_of(entry.path()) == name) return entry.path();
  }
  return std::nullopt;
}

}  // namespace

std::filesystem::path models_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path base = cache != nullptr && *cache != '\0' ? std::filesystem::path(cache)
                               : home != nullptr ? std::filesystem::path(home) / ".cache"
                                                 : std::filesystem::path(".cache");
  return base / "forerun" / "models";
}

std::filesystem::path resolve_model(const std::string& name_or_path) {
  if (name_or_path.empty()) fail(ErrorCode::kInvalidArgument, "the model's name is empty");
  if (looks_like_path(name_or_path)) return name_or_path;
  if (const auto path = find_by_name(name_or_path)) return *path;
  std::error_code ignored;
  if (std::filesystem::exists(name_or_path, ignored)) return name_or_path;
  for (const KnownModel& known : kKnownModels) {
    if (!name_or_path.starts_with(known.prefix)) continue;
    fail(ErrorCode::kNotFound, "model {} is not there yet; get it with: {}", name_or_path,
         known.command);
  }
  fail(ErrorCode::kNotFound,
       "no model or file '{}'; -m takes the path of a .gguf file or a name ({}, gemma3-270m, ...)",
       name_or_path, kDefaultModel);
}

std::vector<std::string> available_models() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder(), ignored)) {
    if (auto name = name_of(entry.path())) names.push_back(std::move(*name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace forerun
