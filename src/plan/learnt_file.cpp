#include "plan/learnt_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/cache_folder.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Raised when the meaning of the numbers changes.
constexpr int kVersion = 3;

std::filesystem::path file_of(const std::filesystem::path& folder, uint64_t key) {
  return folder / fmt::format("{:016x}.json", key);
}

}  // namespace

std::filesystem::path learnt_folder() {
  return cache_folder() / "learnt";
}

Learnt load_learnt(const std::filesystem::path& folder, uint64_t key) {
  std::ifstream stream(file_of(folder, key));
  const Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("version", Json()) != Json(kVersion)) return {};
  try {
    return {.acceptance = json.at("acceptance").get<std::vector<float>>(),
            .models = json.at("models").get<std::vector<std::vector<float>>>()};
  } catch (const Json::exception&) {
    return {};
  }
}

void save_learnt(const std::filesystem::path& folder, uint64_t key, const Learnt& learnt) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const Json json{{"version", kVersion}, {"acceptance", learnt.acceptance}, {"models", learnt.models}};
  replace_file(file_of(folder, key), json.dump() + "\n");
}

}  // namespace forerun
