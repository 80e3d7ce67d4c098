#include "hub/pull.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace forerun {
namespace {

constexpr size_t kMaxListed = 12;

std::string listed(const std::vector<HubModel>& models) {
  std::vector<std::string> names;
  for (const HubModel& model : models) {
    const std::string quant = quant_of(model.name);
    names.push_back(quant.empty() ? model.name : quant);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const bool is_cut = names.size() > kMaxListed;
  if (is_cut) names.resize(kMaxListed);
  return fmt::format("{}{}", fmt::join(names, ", "), is_cut ? ", ..." : "");
}

// By the name of a file, of any of its parts if there are several.
HubModel with_file(const std::vector<HubModel>& models, const std::string& repository,
                   const std::string& file) {
  for (const HubModel& model : models) {
    if (std::find(model.files.begin(), model.files.end(), file) != model.files.end()) return model;
  }
  fail(ErrorCode::kNotFound, "{} has no model in a file {}; it has: {}", repository, file,
       listed(models));
}

HubModel model_to_pull(const HubRepository& repository, const PullOptions& options) {
  std::vector<std::string> paths;
  for (const HubFile& file : repository.files) paths.push_back(file.path);
  const std::vector<HubModel> models = hub_models(paths);
  if (models.empty()) {
    fail(ErrorCode::kNotFound, "{} has no GGUF file: look for a repository that has some",
         options.name.repo);
  }
  if (!options.file.empty()) return with_file(models, options.name.repo, options.file);
  const auto model = choose_model(models, options.name.quant);
  if (!model) {
    fail(ErrorCode::kNotFound, "{} has no {}; it has: {}", options.name.repo, options.name.quant,
         listed(models));
  }
  return *model;
}

}  // namespace

std::filesystem::path pull_model(Hub& hub, const PullOptions& options) {
  const HubRepository repository = hub.repository(options.name.repo);
  const HubModel model = model_to_pull(repository, options);
  if (!model.is_whole()) {
    fail(ErrorCode::kNotFound, "{} has {} of {} parts of {}: choose another file with --file",
         options.name.repo, model.files.size(), model.n_parts, model.name);
  }
  const std::filesystem::path folder = hub_folder(options.name.repo);
  for (const std::string& path : model.files) {
    const auto file = std::find_if(repository.files.begin(), repository.files.end(),
                                   [&](const HubFile& one) { return one.path == path; });
    download(hub, repository, *file, folder / path, options.progress);
  }
  return folder / model.files.front();
}

}  // namespace forerun
