#include "layers/layer_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

[[noreturn]] void fail_damaged(const std::filesystem::path& path) {
  fail(ErrorCode::kInvalidFile,
       "{} is no set of layers, or is damaged: make one with 'forerun layers search'", path.string());
}

std::string fingerprint_text(uint64_t fingerprint) {
  return fmt::format("{:016x}", fingerprint);
}

uint64_t parse_fingerprint(const std::string& text, const std::filesystem::path& path) {
  uint64_t fingerprint = 0;
  std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  if (text != fingerprint_text(fingerprint)) fail_damaged(path);
  return fingerprint;
}

Json origin_json(const LayerOrigin& found) {
  return {{"method", found.method},          {"objective", found.objective},
          {"speedup", found.speedup},        {"texts", found.n_texts},
          {"tokens", found.n_tokens},        {"candidates", found.n_candidates},
          {"best_so_far", found.best_so_far}};
}

LayerOrigin parse_origin(const Json& json, const std::filesystem::path& path) {
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
  if (!makes_sense) fail_damaged(path);
  return found;
}

LayerFile parse(const Json& json, const std::filesystem::path& path,
                const std::optional<LayerModel>& model) {
  if (const int version = json.at("forerun_layers").get<int>(); version != kVersion) {
    fail(ErrorCode::kUnsupported, "{} has version {} of its format and this forerun reads version {}",
         path.string(), version, kVersion);
  }
  const int n_layers = json.at("n_layers").get<int>();
  if (n_layers < 1 || n_layers > LayerSet::kMaxLayers) fail_damaged(path);
  LayerFile file{.model = parse_fingerprint(json.at("model").get<std::string>(), path),
                 .layers = LayerSet::full(n_layers),
                 .found = parse_origin(json.at("found"), path)};
  if (model && (file.model != model->fingerprint || n_layers != model->n_layers)) {
    fail(ErrorCode::kInvalidArgument,
         "{} is for another model: make one for this model with 'forerun layers search'", path.string());
  }
  const Json& skipped = json.at("skipped");
  if (!skipped.is_array()) fail_damaged(path);
  for (const Json& entry : skipped) {
    if (!entry.is_number_integer()) fail_damaged(path);
    const auto block = entry.get<int64_t>();
    if (block < 0 || block >= file.layers.n_blocks()) fail_damaged(path);
    file.layers.set(BlockId{static_cast<int32_t>(block)}, false);
  }
  return file;
}

}  // namespace

void LayerFile::save(const std::filesystem::path& path) const {
  Json skipped = Json::array();
  for (int b = 0; b < layers.n_blocks(); ++b) {
    if (!layers.runs(BlockId{b})) skipped.push_back(b);
  }
  const Json json{{"forerun_layers", kVersion},
                  {"model", fingerprint_text(model)},
                  {"n_layers", layers.n_layers()},
                  {"skipped", std::move(skipped)},
                  {"found", origin_json(found)}};
  replace_file(path, json.dump() + "\n");
}

LayerFile LayerFile::load(const std::filesystem::path& path, const std::optional<LayerModel>& model) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    fail(ErrorCode::kNotFound, "there is no file {}: make one with 'forerun layers search'",
         path.string());
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream.good()) fail(ErrorCode::kIo, "cannot read {}: may you read it?", path.string());
  try {
    return parse(Json::parse(stream), path, model);
  } catch (const Json::exception&) {
    fail_damaged(path);
  }
}

}  // namespace forerun
