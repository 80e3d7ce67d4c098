#include "support/model_files.h"

#include "core/error.h"
#include "engine/model_names.h"

namespace forerun::test {

std::filesystem::path model_file(const std::string& name) {
  const auto models = models_by_name();
  if (const auto found = models.find(name); found != models.end()) return found->second;
  const std::filesystem::path kept = std::filesystem::path(FORERUN_MODELS) / (name + ".gguf");
  if (std::filesystem::exists(kept)) return kept;
  fail(ErrorCode::kNotFound, "no model '{}' in {}: run 'make models'", name, models_folder().string());
}

std::vector<std::string> tiny_model_names() {
  std::vector<std::string> names;
  for (const auto& [name, path] : models_by_name()) {
    if (name.starts_with("tiny-")) names.push_back(name);
  }
  if (names.empty()) {
    fail(ErrorCode::kNotFound, "no tiny models in {}: run 'make models'", models_folder().string());
  }
  return names;
}

std::vector<std::string> tiny_and_real_model_names() {
  std::vector<std::string> names = tiny_model_names();
  names.insert(names.end(), {"smollm2", "gemma3-270m"});
  return names;
}

}  // namespace forerun::test
