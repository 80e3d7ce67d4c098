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

}  // namespace

Json load_json(const JsonFileKind& kind, const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    fail(ErrorCode::kNotFound, "there is no file {}: make one with '{}'", path.string(), kind.command);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream.good() || std::filesystem::is_directory(path, ignored)) {
    fail(ErrorCode::kIo, "cannot read {}: is it a file, and may you read it?", path.string());
  }
  Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  const auto version = json.is_object() ? json.find(kind.version_field) : json.end();
  if (version == json.end() || !version->is_number_integer()) fail_damaged(kind, path);
  check_file_version(path, version->get<int64_t>(), kind.version);
  return json;
}

void fail_damaged(const JsonFileKind& kind, const std::filesystem::path& path) {
  fail(ErrorCode::kInvalidFile, "{} is no {}, or is damaged: make one with '{}'", path.string(),
       kind.what, kind.command);
}

void fail_other_model(const JsonFileKind& kind, const std::filesystem::path& path) {
  fail(ErrorCode::kInvalidArgument, "{} is for another model: make one for this model with '{}'",
       path.string(), kind.command);
}

std::optional<uint64_t> parse_fingerprint(const Json& json) {
  const auto text = json.get<std::string>();
  uint64_t fingerprint = 0;
  std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  return text == fingerprint_text(fingerprint) ? std::optional(fingerprint) : std::nullopt;
}

Json skipped_json(const LayerSet& layers) {
  Json skipped = Json::array();
  for (int b = 0; b < layers.n_blocks(); ++b) {
    if (!layers.runs(BlockId{b})) skipped.push_back(b);
  }
  return skipped;
}

std::optional<LayerSet> parse_skipped(const Json& json, int n_layers) {
  if (!json.is_array() || n_layers < 1 || n_layers > LayerSet::kMaxLayers) return std::nullopt;
  LayerSet layers = LayerSet::full(n_layers);
  for (const Json& entry : json) {
    if (!entry.is_number_integer()) return std::nullopt;
    const auto block = entry.get<int64_t>();
    if (block < 0 || block >= layers.n_blocks()) return std::nullopt;
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

std::optional<LayerOrigin> parse_origin(const Json& json) {
  LayerOrigin found{.method = json.at("method").get<std::string>(),
                    .objective = json.at("objective").get<std::string>(),
                    .speedup = json.at("speedup").get<double>(),
                    .n_texts = json.at("texts").get<int>(),
                    .n_tokens = json.at("tokens").get<int>(),
                    .n_candidates = json.at("candidates").get<int>(),
                    .best_so_far = json.at("best_so_far").get<std::vector<double>>()};
  bool makes_sense = found.n_texts >= 0 && found.n_tokens >= 0 && found.n_candidates >= 0;
  makes_sense &= std::isfinite(found.speedup);
  for (const double speedup : found.best_so_far) makes_sense &= std::isfinite(speedup);
  return makes_sense ? std::optional(std::move(found)) : std::nullopt;
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
  const Json json = load_json(kLayerFile, path);
  try {
    const auto fingerprint = parse_fingerprint(json.at("model"));
    const auto layers = parse_skipped(json.at("skipped"), json.at("n_layers").get<int>());
    const auto found = parse_origin(json.at("found"));
    if (!fingerprint || !layers || !found) fail_damaged(kLayerFile, path);
    if (model && (*fingerprint != model->fingerprint || layers->n_layers() != model->n_layers)) {
      fail_other_model(kLayerFile, path);
    }
    return {.model = *fingerprint, .layers = *layers, .found = *found};
  } catch (const Json::exception&) {
    fail_damaged(kLayerFile, path);
  }
}

}  // namespace forerun
