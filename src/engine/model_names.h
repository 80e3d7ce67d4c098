// Models by name: where they are kept, and how one that is missing is fetched.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace forerun {

constexpr std::string_view kDefaultModel = "smollm2";

// ${XDG_CACHE_HOME:-~/.cache}/forerun/models
std::filesystem::path models_folder();

// Those that can be had by name, and the command, in a checkout, that gets them.
struct KnownModel {
  std::string_view name;
  std::string_view command;
  std::string_view what;
};
std::span<const KnownModel> known_models();

// What is in that folder; a split model by its first part.
std::map<std::string, std::filesystem::path> models_by_name();

// The file of a model given by name or by path. Throws Error: a name that is not
// there yet says which command fetches or makes it.
std::filesystem::path resolve_model(const std::string& name_or_path);

}  // namespace forerun
