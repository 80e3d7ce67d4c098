// forerun domains: kinds of prompts, and the layers that each is drafted with.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "core/error.h"
#include "engine/loaded_model.h"
#include "layers/domain_file.h"
#include "optimise/kmeans.h"
#include "pictures/layer_picture.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

struct DomainsOptions {
  std::string file;
  ModelOptions model;
  std::string prompt;
  bool json = false;
};

// How near the anchors of domains are to each other.
struct Spread {
  std::optional<double> within;   // of one domain's, on average; nullopt: it has one
  std::optional<double> nearest;  // to any of another domain's; nullopt: there is none
  std::string neighbour;          // which
};

Spread spread_of(const DomainFile& file, size_t d) {
  const auto n = static_cast<size_t>(file.n_embd);
  const std::vector<float>& anchors = file.domains[d].anchors;
  const auto cosine = [&](std::span<const float> a, std::span<const float> b) {
    return nearest_by_cosine({.values = a, .n_dimensions = file.n_embd}, b)->cosine;
  };
  Spread spread;
  double sum = 0;
  int n_pairs = 0;
  for (size_t i = 0; i < anchors.size(); i += n) {
    const auto anchor = std::span(anchors).subspan(i, n);
    for (size_t k = i + n; k < anchors.size(); k += n) {
      sum += cosine(anchor, std::span(anchors).subspan(k, n));
      ++n_pairs;
    }
    for (size_t o = 0; o < file.domains.size(); ++o) {
      if (o == d) continue;
      const double nearest = cosine(file.domains[o].anchors, anchor);
      if (spread.nearest && nearest <= *spread.nearest) continue;
      spread.nearest = nearest;
      spread.neighbour = file.domains[o].name;
    }
  }
  if (n_pairs > 0) spread.within = sum / n_pairs;
  return spread;
}

std::string words_of(const std::optional<double>& cosine) {
  return cosine ? fmt::format("{:.3f}", *cosine) : "-";
}

size_t name_width(const DomainFile& file) {
  size_t width = 6;
  for (const Domain& domain : file.domains) width = std::max(width, domain.name.size());
  return width;
}

void show(const DomainsOptions& options) {
  const DomainFile file = DomainFile::load(options.file);
  Json list = Json::array();
  const size_t width = name_width(file);
  if (!options.json) {
    fmt::print("{:<{}} {:>8} {:>8} {:>8}  {:<{}} {:>10} {:>6} {:>9}\n", "domain", width, "anchors",
               "within", "nearest", "", width, "attention", "MLP", "expected");
  }
  for (size_t d = 0; d < file.domains.size(); ++d) {
    const Domain& domain = file.domains[d];
    const Spread spread = spread_of(file, d);
    const SkippedCounts skipped = skipped_counts(domain.layers);
    const size_t n_anchors = domain.anchors.size() / static_cast<size_t>(file.n_embd);
    if (!options.json) {
      fmt::print("{:<{}} {:>8} {:>8} {:>8}  {:<{}} {:>10} {:>6} {:>8.2f}x\n", domain.name, width,
                 n_anchors, words_of(spread.within), words_of(spread.nearest), spread.neighbour, width,
                 skipped.n_attention, skipped.n_mlp, domain.found.speedup);
      continue;
    }
    list.push_back({{"name", domain.name},
                    {"anchors", n_anchors},
                    {"cosine_within", spread.within ? Json(*spread.within) : Json()},
                    {"cosine_nearest", spread.nearest ? Json(*spread.nearest) : Json()},
                    {"nearest", spread.neighbour},
                    {"skipped_attention", skipped.n_attention},
                    {"skipped_mlp", skipped.n_mlp},
                    {"speedup", domain.found.speedup},
                    {"method", domain.found.method},
                    {"candidates", domain.found.n_candidates}});
  }
  if (options.json) {
    return print_json({{"model", fmt::format("{:016x}", file.model)},
                       {"n_layers", file.n_layers},
                       {"vector", to_string(file.vector)},
                       {"least_cosine", file.least_cosine},
                       {"domains", list}});
  }
  fmt::print(
      "\nwithin: mean cosine of a domain's anchors; nearest: the largest cosine to another domain's\n"
      "attention, MLP: blocks left out, of {} each; expected: speed over plain decoding\n"
      "prompts by the {} of their states; below a cosine of {:.3f} they belong to no domain\n",
      file.n_layers, to_string(file.vector), file.least_cosine);
}

void route(const DomainsOptions& options) {
  if (options.prompt.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty: use -p TEXT");
  DomainFile file = DomainFile::load(options.file);  // before the model, which takes longer
  const EngineOptions engine = engine_options(options.model, {});
  const LoadedModel loaded = load_model(resolve_model(engine.model), options.model.device,
                                        [&](double share) { engine.progress("loading", share); });
  file = DomainFile::load(options.file, loaded.model.get());
  const std::vector<TokenId> prompt = prompt_for(loaded, options.prompt);
  Executor executor(loaded.model, {.kv = {.n_cells = static_cast<int>(prompt.size())}});
  const std::vector<double> cosines = file.cosines(read_prompt_state(executor, prompt).value());

  std::vector<size_t> order(cosines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return cosines[a] > cosines[b]; });
  const Domain& nearest = file.domains[order.front()];
  const bool is_near = cosines[order.front()] >= file.least_cosine;
  if (options.json) {
    Json list = Json::object();
    for (const size_t d : order) list[file.domains[d].name] = cosines[d];
    return print_json({{"domain", is_near ? Json(nearest.name) : Json()},
                       {"least_cosine", file.least_cosine},
                       {"cosines", list}});
  }
  const size_t width = name_width(file);
  for (const size_t d : order) fmt::print("{:<{}} {:.3f}\n", file.domains[d].name, width, cosines[d]);
  if (is_near) {
    fmt::print("\nit is drafted with the layers of {}\n", nearest.name);
  } else {
    fmt::print("\nit belongs to no domain: none is as near as {:.3f}\n", file.least_cosine);
  }
}

}  // namespace

void add_domains_command(CLI::App& app) {
  auto options = std::make_shared<DomainsOptions>();
  CLI::App* domains = app.add_subcommand(
      "domains", "Make and look into kinds of prompts, each with layers to draft with");
  domains->require_subcommand(1);
  add_domains_build_command(*domains);

  CLI::App* show_command = domains->add_subcommand("show", "Show what a file of domains holds");
  show_command->add_option("file", options->file, "The file")->required();
  show_command->add_flag("--json", options->json, "Print one JSON object");
  show_command->callback([options] { show(*options); });

  CLI::App* route_command = domains->add_subcommand("route", "Show which domain a prompt belongs to");
  route_command->add_option("file", options->file, "The file")->required();
  route_command->add_option("-p,--prompt", options->prompt, "The prompt")->required();
  route_command->add_flag("--json", options->json, "Print one JSON object");
  add_model_options(*route_command, options->model);
  route_command->callback([options] { route(*options); });
}

}  // namespace forerun
