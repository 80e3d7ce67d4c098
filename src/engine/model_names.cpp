#include "engine/model_names.h"

#include <optional>

#include "core/cache_folder.h"
#include "core/error.h"
#include "engine/hub_names.h"

namespace forerun {
namespace {

constexpr KnownModel kKnownModels[] = {
    {"smollm2", "scripts/models.py fetch smollm2", "SmolLM2-135M-Instruct, 98 MB, Q4_1"},
    {"gemma3-270m", "scripts/models.py fetch gemma3-270m", "Gemma 3 270M, 253 MB, Q4_K_M"},
    {"smollm2-q8", "make models", "SmolLM2 in Q8_0, 145 MB"},
    {"smollm2-deep", "make models",
     "SmolLM2 with blocks that do little, 503 MB, for drafts with layers skipped"},
};

// How to get a model that is not there, by its name or the beginning of its name.
std::string command_for(const std::string& name) {
  for (const KnownModel& model : kKnownModels) {
    if (name == model.name) return std::string(model.command);
  }
  if (name.starts_with("smollm2-wide") || name.starts_with("random-"))
    return "scripts/models.py make " + name;
  if (name.starts_with("smollm2-") || name.starts_with("tiny-")) return "make models";
  return "";
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".gguf");
}

// The name a file of the models folder goes by; nullopt if it is none. A split model
// goes by what its parts' names ("NAME-00001-of-00003") share.
std::optional<std::string> name_of(const std::filesystem::path& file) {
  if (file.extension() != ".gguf") return std::nullopt;
  const std::string stem = file.stem().string();
  const auto part = parse_split(stem);
  if (!part) return stem;
  return part->number == 1 ? std::optional(part->model) : std::nullopt;
}

// A model that was pulled from a hub, if the name is of that kind and no file's.
std::filesystem::path resolve_path(const std::string& text) {
  std::error_code ignored;
  if (std::filesystem::exists(text, ignored) || text.ends_with(".gguf")) return text;
  const auto name = parse_hub_name(text);
  if (!name) return text;
  if (const auto file = find_pulled(*name)) return *file;
  fail(ErrorCode::kNotFound,
       "no file '{0}', and no model of that name was pulled; get it with: forerun pull {0}", text);
}

}  // namespace

std::span<const KnownModel> known_models() {
  return kKnownModels;
}

std::filesystem::path models_folder() {
  return cache_folder() / "models";
}

std::map<std::string, std::filesystem::path> models_by_name() {
  std::map<std::string, std::filesystem::path> models;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(models_folder(), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    if (const auto name = name_of(entry->path())) models.emplace(*name, entry->path());
  }
  return models;
}

std::filesystem::path resolve_model(const std::string& name_or_path) {
  if (name_or_path.empty()) fail(ErrorCode::kInvalidArgument, "the model's name is empty");
  if (looks_like_path(name_or_path)) return resolve_path(name_or_path);
  const auto models = models_by_name();
  if (const auto found = models.find(name_or_path); found != models.end()) return found->second;
  std::error_code ignored;
  if (std::filesystem::exists(name_or_path, ignored)) return name_or_path;
  if (const std::string command = command_for(name_or_path); !command.empty()) {
    fail(ErrorCode::kNotFound, "model {} is not there yet; get it with: {}", name_or_path, command);
  }
  fail(ErrorCode::kNotFound,
       "no model or file '{}'; -m takes the path of a .gguf file or a name ({}, gemma3-270m, ...)",
       name_or_path, kDefaultModel);
}

}  // namespace forerun
