// forerun models: which models are here by name, and which can be had.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "cli/commands.h"
#include "cli/output.h"
#include "engine/model_names.h"
#include "text/printable.h"

namespace forerun {
namespace {

uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code gone;
  const auto n_bytes = std::filesystem::file_size(file, gone);
  return gone ? 0 : n_bytes;
}

void print_list() {
  const auto here = models_by_name();
  if (here.empty()) std::printf("no models in %s yet\n", printable(models_folder().string()).c_str());
  for (const auto& [name, file] : here) {
    std::printf("%-28s %8.1f MB  %s\n", printable(name).c_str(),
                static_cast<double>(size_of(file)) / 1e6, printable(file.string()).c_str());
  }
  for (const KnownModel& model : known_models()) {
    if (here.contains(std::string(model.name))) continue;
    std::printf("%-28s not here yet: %s (%s)\n", std::string(model.name).c_str(),
                std::string(model.command).c_str(), std::string(model.what).c_str());
  }
  std::printf("-m takes one of these names, or the path of any GGUF file\n");
}

nlohmann::ordered_json list_json() {
  auto here = nlohmann::ordered_json::array();
  auto available = nlohmann::ordered_json::array();
  const auto models = models_by_name();
  for (const auto& [name, file] : models) {
    here.push_back({{"name", name}, {"path", file.string()}, {"size_bytes", size_of(file)}});
  }
  for (const KnownModel& model : known_models()) {
    if (models.contains(std::string(model.name))) continue;
    available.push_back({{"name", model.name}, {"command", model.command}, {"what", model.what}});
  }
  return {{"models", here}, {"available", available}};
}

}  // namespace

void add_models_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("models", "List the models that are here, and those to be had");
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] {
    if (*json) {
      print_json(list_json());
    } else {
      print_list();
    }
  });
}

}  // namespace forerun
