// forerun layers: sets of layers that the model drafts for itself with.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/layers/texts.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "core/error.h"
#include "core/replace_file.h"
#include "layers/layer_file.h"
#include "model/model.h"
#include "pictures/layer_picture.h"

namespace forerun {
namespace {

struct ShowOptions {
  std::vector<std::string> files;
  std::string model;  // empty: whatever the files are for
  std::string svg;
  bool json = false;
};

// What is known of the model that sets are for; its weights are not loaded.
struct CheckedModel {
  LayerModel identity;
  std::optional<LayerSet> without_planted;
};

CheckedModel read_model(const std::string& name) {
  const GgufFile file = GgufFile::open(resolve_model(name));
  const Architecture* architecture = architecture_of(file);
  if (architecture == nullptr) {
    fail(ErrorCode::kUnsupported, "{} runs through libllama, which leaves no layers out",
         file.path().string());
  }
  const int n_layers = architecture->config(file.metadata()).n_layers;
  return {.identity = {.fingerprint = model_fingerprint(file), .n_layers = n_layers},
          .without_planted = planted_layers(file, n_layers)};
}

std::string note_of(const LayerFile& file, const std::optional<LayerSet>& without_planted) {
  const LayerOrigin& found = file.found;
  std::string note =
      fmt::format("{:.2f}x plain decoding ({}), {} on {} texts, {} candidates", found.speedup,
                  found.objective, found.method, found.n_texts, found.n_candidates);
  if (without_planted) note += "; " + planted_words(file.layers, *without_planted);
  return note;
}

void show(const ShowOptions& options) {
  std::optional<CheckedModel> model;
  if (!options.model.empty()) model = read_model(options.model);
  std::vector<PicturedLayers> sets;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& path : options.files) {
    const LayerFile file = LayerFile::load(path, model ? std::optional(model->identity) : std::nullopt);
    sets.push_back({.name = path,
                    .layers = file.layers,
                    .note = note_of(file, model ? model->without_planted : std::nullopt)});
    const SkippedCounts skipped = skipped_counts(file.layers);
    list.push_back({{"file", path},
                    {"model", fingerprint_text(file.model)},
                    {"n_layers", file.layers.n_layers()},
                    {"skipped_attention", skipped.n_attention},
                    {"skipped_mlp", skipped.n_mlp},
                    {"skipped", skipped_json(file.layers)},
                    {"found", origin_json(file.found)}});
  }
  if (!options.svg.empty()) replace_file(options.svg, layer_svg(sets));
  if (options.json) return print_json({{"sets", list}});
  for (size_t i = 0; i < sets.size(); ++i) fmt::print("{}{}", i > 0 ? "\n" : "", layer_text(sets[i]));
}

}  // namespace

void add_layers_command(CLI::App& app) {
  CLI::App* layers =
      app.add_subcommand("layers", "Find and show sets of layers that the model drafts for itself with");
  layers->require_subcommand(1);
  add_layers_search_command(*layers);

  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = layers->add_subcommand("show", "Show which blocks sets keep and leave out");
  command->add_option("files", options->files, "Files of 'forerun layers search'")
      ->required()
      ->take_all();
  command->add_option("-m,--model", options->model,
                      "The model they are for, a path or a name: checks that, and knows planted blocks");
  command->add_option("--svg", options->svg, "Write a picture to this file");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { show(*options); });
}

}  // namespace forerun
