// forerun models: which models are here by name, and which can be had.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "engine/hub_names.h"
#include "engine/model_names.h"
#include "text/printable.h"

namespace forerun {
namespace {

// A model that is here.
struct ListedModel {
  std::string name;
  std::filesystem::path file;
  uintmax_t n_bytes;  // of all its parts that are known
};

uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code gone;
  const auto n_bytes = std::filesystem::file_size(file, gone);
  return gone ? 0 : n_bytes;
}

std::vector<ListedModel> models_here() {
  std::vector<ListedModel> models;
  for (const auto& [name, file] : models_by_name()) models.push_back({name, file, size_of(file)});
  for (const PulledModel& pulled : pulled_models()) {
    ListedModel model{pulled.name, pulled.files.front(), 0};
    for (const auto& file : pulled.files) model.n_bytes += size_of(file);
    models.push_back(std::move(model));
  }
  return models;
}

// Of those that can be had by name, what is not here.
std::vector<KnownModel> models_to_get() {
  const auto here = models_by_name();
  std::vector<KnownModel> models;
  for (const KnownModel& model : known_models()) {
    if (!here.contains(std::string(model.name))) models.push_back(model);
  }
  return models;
}

void print_list() {
  const std::vector<ListedModel> here = models_here();
  if (here.empty()) std::printf("no models in %s yet\n", printable(models_folder().string()).c_str());
  for (const ListedModel& model : here) {
    std::printf("%-28s %8.1f MB  %s\n", printable(model.name).c_str(),
                static_cast<double>(model.n_bytes) / 1e6, printable(model.file.string()).c_str());
  }
  for (const KnownModel& model : models_to_get()) {
    std::printf("%-28s not here yet: %s (%s)\n", std::string(model.name).c_str(),
                std::string(model.command).c_str(), std::string(model.what).c_str());
  }
  std::printf("-m takes one of these names, or the path of any GGUF file\n");
}

nlohmann::ordered_json list_json() {
  auto here = nlohmann::ordered_json::array();
  auto available = nlohmann::ordered_json::array();
  for (const ListedModel& model : models_here()) {
    here.push_back({{"name", model.name}, {"path", model.file.string()}, {"size_bytes", model.n_bytes}});
  }
  for (const KnownModel& model : models_to_get()) {
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
