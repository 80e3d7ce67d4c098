// forerun domains build: from prompts, of known kinds or not, to a file of domains.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/layers/domain_prompts.h"
#include "cli/layers/texts.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "cost/known_costs.h"
#include "cost/pass_costs.h"
#include "engine/loaded_model.h"
#include "layers/domain_file.h"
#include "pictures/layer_picture.h"
#include "tune/domain_anchors.h"
#include "tune/layer_search.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

struct DomainsBuildOptions {
  ModelOptions model;
  DomainSources sources;
  std::string vector = "mean";
  int n_clusters = 10;
  TextOptions texts{.n_texts = 8, .n_tokens = 32};
  LayerSearchOptions search;
  std::string output;
  bool json = false;
};

// Room for the longest prompt, and for the longest texts of a domain that are searched on
// together.
int cells_for(const std::vector<DomainPrompts>& domains, const DomainsBuildOptions& options) {
  constexpr size_t kCalibration = 4096;
  size_t n_cells = kCalibration;
  for (const DomainPrompts& domain : domains) {
    std::vector<size_t> lengths;
    for (const auto& prompt : domain.prompts) lengths.push_back(prompt.size());
    std::sort(lengths.rbegin(), lengths.rend());  // the longest first
    const size_t n_texts = std::min(lengths.size(), static_cast<size_t>(options.texts.n_texts));
    // The answers twice: committed, and as a candidate has them.
    size_t n = 2 * n_texts * static_cast<size_t>(options.texts.n_tokens + 1);
    for (size_t i = 0; i < n_texts; ++i) n += lengths[i];
    n_cells = std::max(n_cells, n);
  }
  return static_cast<int>(n_cells);
}

void read_states(Executor& executor, std::vector<DomainPrompts>& domains) {
  size_t n_all = 0, n_read = 0;
  for (const DomainPrompts& domain : domains) {
    for (const auto& prompt : domain.prompts) n_all += prompt.size();
  }
  WorkProgress progress("reading prompts");
  for (DomainPrompts& domain : domains) {
    for (const auto& prompt : domain.prompts) {
      domain.states.push_back(read_prompt_state(executor, prompt).value());
      n_read += prompt.size();
      progress.show(static_cast<double>(n_read) / static_cast<double>(n_all), ", " + domain.name);
    }
  }
}

// How well both kinds of vectors tell domains apart.
using RoutingChecks = std::map<PromptVector, RoutingCheck>;

RoutingChecks check_vectors(const std::vector<DomainPrompts>& domains, int n_embd,
                            const DomainsBuildOptions& options) {
  RoutingChecks checks;
  for (const PromptVector kind : {PromptVector::kMean, PromptVector::kLast}) {
    std::vector<DomainVectors> vectors;
    for (const DomainPrompts& domain : domains) vectors.push_back(domain.vectors(kind));
    const RoutingCheck& check =
        checks.emplace(kind, check_routing(vectors, n_embd, options.n_clusters)).first->second;
    if (options.json) continue;
    fmt::print("by the {} of its states {} of {} prompts, each left out of the anchors, find home\n",
               to_string(kind), check.n_all_at_home(), check.n_all());
  }
  std::fflush(stdout);
  return checks;
}

// What the model answers to these prompts of a domain.
std::vector<SearchText> texts_of(const std::string& domain, Executor& executor,
                                 const LoadedModel& loaded,
                                 const std::vector<std::vector<TokenId>>& prompts, int n_tokens) {
  std::vector<SearchText> texts =
      shown_answers(executor, loaded, prompts,
                    {.what = domain + ": answering", .generation = greedy_options(n_tokens)});
  if (!texts.empty()) return texts;
  fail(ErrorCode::kInvalidArgument, "the model answers no prompt of {}: give others, or more (--texts)",
       domain);
}

// The layers to draft such texts with, beginning with what was good for other domains.
void search_domain(ExpectedSpeed& objective, const LayerSearchOptions& options, int n_texts,
                   Domain& domain) {
  LayerSearchResult result =
      shown_search(objective, domain.layers.n_layers(), options, domain.name + ": searching");
  KeptLayers kept = kept_layers(std::move(result), {.method = options.method,
                                                    .objective = "expected",
                                                    .n_texts = n_texts,
                                                    .n_tokens = objective.n_tokens()});
  domain.layers = kept.layers;
  domain.found = std::move(kept.found);
}

// A domain that was searched later may have found what suits this one better.
void take_better(ExpectedSpeed& objective, std::span<const Domain> others, Domain& domain) {
  for (const Domain& other : others) {
    if (other.layers.is_full() || other.layers == domain.layers) continue;
    const double speedup = objective.speedup(other.layers);
    ++domain.found.n_candidates;
    if (speedup > domain.found.speedup) {
      domain.layers = other.layers;
      domain.found.speedup = speedup;
    }
    domain.found.best_so_far.push_back(domain.found.speedup);
  }
}

void show_built(const DomainFile& file, const std::vector<DomainPrompts>& prompts,
                const RoutingCheck& check, bool were_found) {
  for (size_t d = 0; d < file.domains.size(); ++d) {
    const Domain& domain = file.domains[d];
    fmt::print("{}: {} of {} prompts find home, {:.2f}x without {} of {} blocks after {} candidates\n",
               domain.name, check.n_at_home[d], check.n_prompts[d], domain.found.speedup,
               domain.layers.n_blocks() - domain.layers.n_running(), domain.layers.n_blocks(),
               domain.found.n_candidates);
    if (!were_found) continue;
    std::string words;
    for (const auto& [category, n] : prompts[d].category_counts()) {
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", category, n);
    }
    if (!words.empty()) fmt::print("  prompts of {}\n", words);
  }
}

Json built_json(const DomainFile& file, const std::vector<DomainPrompts>& prompts,
                const RoutingChecks& checks) {
  Json list = Json::array();
  for (size_t d = 0; d < file.domains.size(); ++d) {
    const Domain& domain = file.domains[d];
    const SkippedCounts skipped = skipped_counts(domain.layers);
    Json at_home = Json::object(), categories = Json::object();
    for (const auto& [kind, check] : checks) at_home[std::string(to_string(kind))] = check.n_at_home[d];
    for (const auto& [category, n] : prompts[d].category_counts()) categories[category] = n;
    list.push_back({{"name", domain.name},
                    {"prompts", prompts[d].prompts.size()},
                    {"categories", categories},
                    {"at_home", at_home},
                    {"skipped_attention", skipped.n_attention},
                    {"skipped_mlp", skipped.n_mlp},
                    {"speedup", domain.found.speedup},
                    {"candidates", domain.found.n_candidates}});
  }
  return {{"vector", to_string(file.vector)}, {"least_cosine", file.least_cosine}, {"domains", list}};
}

void build_domains(const DomainsBuildOptions& options) {
  check_output(options.output);
  const std::vector<BenchPrompt> prompts = read_all_prompts(options.sources);
  const int n_found = n_domains_to_find(prompts, options.sources);
  const EngineOptions engine = engine_options(options.model, {});
  const LoadedModel loaded = load_model(resolve_model(engine.model), options.model.device,
                                        [&](double share) { engine.progress("loading", share); });
  loaded.model->require_blocks("finding layers for domains");
  std::vector<DomainPrompts> domains;
  if (n_found > 0) {
    domains.push_back(in_one(prompts, loaded));
  } else {
    domains = by_category(prompts, loaded);
  }
  Executor executor(loaded.model, {.kv = {.n_cells = cells_for(domains, options)}});
  PassCosts costs(
      calibrated(executor, [&](double share) { engine.progress("measuring this machine", share); }));
  read_states(executor, domains);

  const ModelConfig& config = loaded.model->config();
  const PromptVector kind = parse_prompt_vector(options.vector).value();
  if (n_found > 0) domains = found_domains(std::move(domains.front()), config.n_embd, n_found, kind);
  const RoutingChecks checks = check_vectors(domains, config.n_embd, options);
  const RoutingCheck& check = checks.at(kind);
  DomainFile file{.model = loaded.model->fingerprint(),
                  .n_layers = config.n_layers,
                  .n_embd = config.n_embd,
                  .vector = kind,
                  .least_cosine = check.least_cosine};
  LayerSearchOptions search = options.search;
  std::vector<std::vector<SearchText>> texts;
  for (const DomainPrompts& prompts_of : domains) {
    const DomainVectors vectors = prompts_of.vectors(file.vector);
    Domain& domain = file.domains.emplace_back();
    domain.name = prompts_of.name;
    domain.layers = LayerSet::full(config.n_layers);
    domain.anchors = make_anchors(vectors, config.n_embd, options.n_clusters);
    std::vector<std::vector<TokenId>> chosen;
    for (const size_t i :
         representatives(vectors, config.n_embd, domain.anchors, options.texts.n_texts)) {
      chosen.push_back(prompts_of.prompts[i]);
    }
    texts.push_back(texts_of(domain.name, executor, loaded, chosen, options.texts.n_tokens));
    ExpectedSpeed objective(executor, costs, texts.back());
    search_domain(objective, search, static_cast<int>(texts.back().size()), domain);
    if (!domain.layers.is_full()) search.first_sets = {domain.layers};
  }
  for (size_t d = 0; d < file.domains.size(); ++d) {
    Domain& domain = file.domains[d];
    ExpectedSpeed objective(executor, costs, std::move(texts[d]));
    take_better(objective, std::span(file.domains).subspan(d + 1), domain);
  }
  file.save(options.output);
  if (options.json) return print_json(built_json(file, domains, checks));
  show_built(file, domains, check, n_found > 0);
}

}  // namespace

void add_domains_build_command(CLI::App& domains) {
  auto options = std::make_shared<DomainsBuildOptions>();
  CLI::App* command = domains.add_subcommand(
      "build", "Make domains: what their prompts are like, and which layers to draft them with");
  command
      ->add_option(
          "--prompts", options->sources.prompts,
          "JSONL file as 'bench spec' reads it; categories are the domains. Where no prompt has "
          "one, domains are found")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--domain", options->sources.domains,
                   "NAME=FILE: all prompts of a file are one domain")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--unlabelled", options->sources.n_unlabelled,
                   fmt::format("Ignore categories and find so many domains of prompts that are alike "
                               "(default: {} where no prompt has a category)",
                               kDefaultUnlabelled))
      ->check(CLI::Range(2, 1000));
  command->add_option("-o,--output", options->output, "The file to write")->required();
  command
      ->add_option("--vector", options->vector,
                   "What stands for a prompt: the mean of its states, or the last")
      ->check(CLI::IsMember({"mean", "last"}))
      ->capture_default_str();
  command->add_option("--clusters", options->n_clusters, "Anchors of a domain at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_text_options(*command, options->texts, "Prompts of a domain that layers are searched on");
  add_layer_search_options(*command, options->search);
  command->add_flag("--json", options->json, "Print one JSON object");
  add_model_options(*command, options->model);
  command->callback([options] { build_domains(*options); });
}

}  // namespace forerun
