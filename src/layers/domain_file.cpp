#include "layers/domain_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "core/replace_file.h"
#include "optimise/kmeans.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonFileKind kDomainFile{.version_field = "forerun_domains",
                                   .version = 1,
                                   .what = "file of domains",
                                   .command = "forerun domains build"};

// The number with the fewest digits that is this float.
double shortest(float x) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), x);
  double value = 0;
  std::from_chars(text, written.ptr, value);
  return value;
}

Json anchors_json(std::span<const float> anchors, size_t n_embd) {
  Json list = Json::array();
  for (size_t i = 0; i < anchors.size(); i += n_embd) {
    Json& anchor = list.emplace_back(Json::array());
    for (const float x : anchors.subspan(i, n_embd)) anchor.push_back(shortest(x));
  }
  return list;
}

std::vector<float> parse_anchors(const Json& json, size_t n_embd) {
  std::vector<float> values;
  for (const auto& anchor : json.get<std::vector<std::vector<double>>>()) {
    expect(anchor.size() == n_embd);
    for (const double x : anchor) values.push_back(static_cast<float>(x));
    const auto floats = std::span(values).last(n_embd);
    expect(std::ranges::all_of(floats, [](float x) { return std::isfinite(x); }));
    expect(std::ranges::any_of(floats, [](float x) { return x != 0; }));  // it has a direction
  }
  expect(!values.empty());
  return values;
}

}  // namespace

std::string_view to_string(PromptVector kind) {
  return kind == PromptVector::kMean ? "mean" : "last";
}

std::optional<PromptVector> parse_prompt_vector(std::string_view name) {
  for (const PromptVector kind : {PromptVector::kMean, PromptVector::kLast}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

std::span<const float> vector_of(const PromptState& state, PromptVector kind) {
  return kind == PromptVector::kMean ? state.mean() : state.last();
}

std::vector<double> DomainFile::cosines(const PromptState& prompt) const {
  const std::span<const float> query = vector_of(prompt, vector);
  CHECK(query.size() == static_cast<size_t>(n_embd));
  std::vector<double> cosines;
  for (const Domain& domain : domains) {
    const auto nearest = nearest_by_cosine({.values = domain.anchors, .n_dimensions = n_embd}, query);
    // What has no direction, or is not made of finite numbers, is near to nothing.
    cosines.push_back(nearest && std::isfinite(nearest->cosine) ? nearest->cosine : -1);
  }
  return cosines;
}

void DomainFile::save(const std::filesystem::path& path) const {
  Json list = Json::array();
  for (const Domain& domain : domains) {
    list.push_back({{"name", domain.name},
                    {"skipped", skipped_json(domain.layers)},
                    {"found", origin_json(domain.found)},
                    {"anchors", anchors_json(domain.anchors, static_cast<size_t>(n_embd))}});
  }
  const Json json{{kDomainFile.version_field, kDomainFile.version},
                  {"model", fingerprint_text(model)},
                  {"n_layers", n_layers},
                  {"n_embd", n_embd},
                  {"vector", to_string(vector)},
                  {"least_cosine", least_cosine},
                  {"domains", list}};
  replace_file(path, json.dump() + "\n");
}

DomainFile DomainFile::load(const std::filesystem::path& path, const Model* model) {
  DomainFile file;
  load_json(kDomainFile, path, [&](const Json& json) {
    const auto of_prompts = parse_prompt_vector(json.at("vector").get<std::string>());
    expect(of_prompts.has_value());
    file = {.model = parse_fingerprint(json.at("model")),
            .n_layers = json.at("n_layers").get<int>(),
            .n_embd = json.at("n_embd").get<int>(),
            .vector = *of_prompts,
            .least_cosine = json.at("least_cosine").get<double>()};
    const Json& list = json.at("domains");
    expect(file.n_embd > 0 && file.least_cosine >= -1 && file.least_cosine <= 1);
    expect(list.is_array() && !list.empty());
    std::set<std::string> names;
    for (const Json& entry : list) {
      Domain& domain = file.domains.emplace_back();
      domain = {.name = entry.at("name").get<std::string>(),
                .layers = parse_skipped(entry.at("skipped"), file.n_layers),
                .found = parse_origin(entry.at("found")),
                .anchors = parse_anchors(entry.at("anchors"), static_cast<size_t>(file.n_embd))};
      expect(!domain.name.empty() && names.insert(domain.name).second);
    }
  });
  const bool is_for_it = model == nullptr || (file.model == model->fingerprint() &&
                                              file.n_layers == model->config().n_layers &&
                                              file.n_embd == model->config().n_embd);
  if (!is_for_it) fail_other_model(kDomainFile, path);
  return file;
}

}  // namespace forerun
