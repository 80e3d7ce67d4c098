#include "layers/layer_file.h"

#include <nlohmann/json.hpp>

#include "core/replace_file.h"
#include "layers/layer_json.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonFileKind kKind{.version_field = "forerun_layers",
                             .version = 1,
                             .what = "set of layers",
                             .command = "forerun layers search"};

}  // namespace

void LayerFile::save(const std::filesystem::path& path) const {
  const Json json{{kKind.version_field, kKind.version},
                  {"model", fingerprint_text(model)},
                  {"n_layers", layers.n_layers()},
                  {"skipped", skipped_json(layers)},
                  {"found", origin_json(found)}};
  replace_file(path, json.dump() + "\n");
}

LayerFile LayerFile::load(const std::filesystem::path& path, const std::optional<LayerModel>& model) {
  const Json json = load_json(kKind, path);
  try {
    const auto fingerprint = parse_fingerprint(json.at("model"));
    const auto layers = parse_skipped(json.at("skipped"), json.at("n_layers").get<int>());
    const auto found = parse_origin(json.at("found"));
    if (!fingerprint || !layers || !found) fail_damaged(kKind, path);
    if (model && (*fingerprint != model->fingerprint || layers->n_layers() != model->n_layers)) {
      fail_other_model(kKind, path);
    }
    return {.model = *fingerprint, .layers = *layers, .found = *found};
  } catch (const Json::exception&) {
    fail_damaged(kKind, path);
  }
}

}  // namespace forerun
