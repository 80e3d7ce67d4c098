#include "layers/layer_file.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file_version.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonFileKind kLayerFile{.version_field = "forerun_layers",
                                  .version = 1,
                                  .what = "set of layers",
                                  .command = "forerun layers search"};

struct Nonsense {};

}  // namespace

void load_json(const JsonFileKind& kind, const std::filesystem::path& path,
               const std::function<void(const Json&)>& parse) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    fail(ErrorCode::kNotFound, "there is no file {}: make one with '{}'", path.string(), kind.command);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream.good() || std::filesystem::is_directory(path, ignored)) {
    fail(ErrorCode::kIo, "cannot read {}: is it a file, and may you read it?", path.string());
  }
  try {
    const Json json = Json::parse(stream);
    const Json& version = json.at(kind.version_field);
    expect(version.is_number_integer());
    check_file_version(path, version.get<int64_t>(), kind.version);
    return parse(json);
  } catch (const Json::exception&) {
  } catch (const Nonsense&) {
  }
  fail(ErrorCode::kInvalidFile, "{} is no {}, or is damaged: make one with '{}'", path.string(),
       kind.what, kind.command);
}

void expect(bool makes_sense) {
  if (!makes_sense) throw Nonsense();
}

void fail_other_model(const JsonFileKind& kind, const std::filesystem::path& path) {
  fail(ErrorCode::kInvalidArgument, "{} is for another model: make one for this model with '{}'",
       path.string(), kind.command);
}

uint64_t parse_fingerprint(const Json& json) {
  const auto text = json.get<std::string>();
  uint64_t fingerprint = 0;
  std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  expect(text == fingerprint_text(fingerprint));
  return fingerprint;
}

Json skipped_json(const LayerSet& layers) {
  Json skipped = Json::array();
  for (int b = 0; b < layers.n_blocks(); ++b) {
    if (!layers.runs(BlockId{b})) skipped.push_back(b);
  }
  return skipped;
}

LayerSet parse_skipped(const Json& json, int n_layers) {
  expect(json.is_array() && n_layers >= 1 && n_layers <= LayerSet::kMaxLayers);
  LayerSet layers = LayerSet::full(n_layers);
  for (const Json& entry : json) {
    const auto block = entry.get<int64_t>();
    expect(entry.is_number_integer() && block >= 0 && block < layers.n_blocks());
    layers.set(BlockId{static_cast<int32_t>(block)}, false);
  }
  return layers;
}

Json origin_json(const LayerOrigin& found) {
  return {{"method", found.method},          {"objective", found.objective},
          {"speedup", found.speedup},        {"texts", found.n_texts},
          {"tokens", found.n_tokens},        {"candidates", found.n_candidates},
          {"best_so_far", found.best_so_far}};
}

LayerOrigin parse_origin(const Json& json) {
  LayerOrigin found{.method = json.at("method").get<std::string>(),
                    .objective = json.at("objective").get<std::string>(),
                    .speedup = json.at("speedup").get<double>(),
                    .n_texts = json.at("texts").get<int>(),
                    .n_tokens = json.at("tokens").get<int>(),
                    .n_candidates = json.at("candidates").get<int>(),
                    .best_so_far = json.at("best_so_far").get<std::vector<double>>()};
  expect(found.n_texts >= 0 && found.n_tokens >= 0 && found.n_candidates >= 0);
  expect(std::isfinite(found.speedup));
  for (const double speedup : found.best_so_far) expect(std::isfinite(speedup));
  return found;
}

void LayerFile::save(const std::filesystem::path& path) const {
  const Json json{{kLayerFile.version_field, kLayerFile.version},
                  {"model", fingerprint_text(model)},
                  {"n_layers", layers.n_layers()},
                  {"skipped", skipped_json(layers)},
                  {"found", origin_json(found)}};
  replace_file(path, json.dump() + "\n");
}

LayerFile LayerFile::load(const std::filesystem::path& path, const std::optional<LayerModel>& model) {
  LayerFile file;
  load_json(kLayerFile, path, [&](const Json& json) {
    file = {.model = parse_fingerprint(json.at("model")),
            .layers = parse_skipped(json.at("skipped"), json.at("n_layers").get<int>()),
            .found = parse_origin(json.at("found"))};
  });
  if (model && (file.model != model->fingerprint || file.layers.n_layers() != model->n_layers)) {
    fail_other_model(kLayerFile, path);
  }
  return file;
}

}  // namespace forerun
