// forerun layers search: from prompts to a set of layers that the model drafts well with.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/layers/texts.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "cost/known_costs.h"
#include "cost/pass_costs.h"
#include "draft/methods.h"
#include "layers/layer_file.h"
#include "pictures/layer_picture.h"

namespace forerun {
namespace {

struct SearchOptions {
  ModelOptions model;
  std::vector<std::string> prompts;
  TextOptions texts{.n_texts = 16, .n_tokens = 64};
  std::string objective;  // empty: by method
  LayerSearchOptions search;
  int n_context = 0;  // 0: the texts' own
  std::string output;
  bool json = false;

  // Draft & Verify measures; the others are to find the same with less.
  bool is_measured() const {
    return objective.empty() ? search.method == "selfsd" : objective == "measured";
  }
};

// Room for all texts, and for what an objective tries behind them.
int cells_for(const std::vector<std::vector<TokenId>>& prompts, const SearchOptions& options) {
  constexpr int kCalibration = 4096;
  std::vector<SearchText> texts;
  int n_all = 0;
  for (const auto& prompt : prompts) {
    const auto n_text = static_cast<int>(prompt.size()) + options.texts.n_tokens;
    texts.push_back(
        {.tokens = std::vector<TokenId>(static_cast<size_t>(n_text)), .n_prompt = prompt.size()});
    n_all += n_text + options.texts.n_tokens;
  }
  return std::max({kCalibration, n_all, options.is_measured() ? AnswerTimer::n_cells(texts) : 0});
}

struct Found {
  LayerFile file;
  std::optional<LayerSet> without_planted;
  double planted_speedup = 0;  // of leaving out just those
  double seconds = 0;
  bool is_interrupted = false;
};

void print(const SearchOptions& options, const Found& found) {
  const LayerFile& file = found.file;
  const LayerOrigin& how = file.found;
  const SkippedCounts skipped = skipped_counts(file.layers);
  if (options.json) {
    nlohmann::ordered_json json{{"file", options.output},
                                {"model", fingerprint_text(file.model)},
                                {"n_layers", file.layers.n_layers()},
                                {"method", how.method},
                                {"objective", how.objective},
                                {"speedup", how.speedup},
                                {"texts", how.n_texts},
                                {"tokens", how.n_tokens},
                                {"candidates", how.n_candidates},
                                {"seconds", found.seconds},
                                {"interrupted", found.is_interrupted},
                                {"skipped_attention", skipped.n_attention},
                                {"skipped_mlp", skipped.n_mlp},
                                {"skipped", skipped_json(file.layers)}};
    if (found.without_planted) {
      json["planted"] = skipped_json(*found.without_planted);
      json["planted_speedup"] = found.planted_speedup;
    }
    return print_json(json);
  }
  const std::string planted =
      found.without_planted
          ? fmt::format("{}; just those: {:.2f}x", planted_words(file.layers, *found.without_planted),
                        found.planted_speedup)
          : "";
  fmt::print("{}", layer_text({.name = options.output, .layers = file.layers, .note = planted}));
  const std::string end = found.is_interrupted ? ", interrupted" : "";
  if (file.layers.is_full()) {
    fmt::print("\nno set pays here: the file says not to draft ({} candidates in {:.0f} s{})\n",
               how.n_candidates, found.seconds, end);
    return;
  }
  fmt::print("\n{:.2f}x the speed of plain decoding ({}), {} candidates in {:.0f} s{}\n", how.speedup,
             how.objective, how.n_candidates, found.seconds, end);
}

void search(const SearchOptions& options) {
  check_output(options.output);
  const EngineOptions engine = engine_options(options.model, {});
  const LoadedModel loaded = load_model(resolve_model(engine.model), options.model.device,
                                        [&](double share) { engine.progress("loading", share); });
  const std::vector<std::vector<TokenId>> prompts =
      prompts_of(loaded, options.prompts, options.texts.n_texts);
  loaded.model->require_blocks("a search for layers");
  const int n_layers = loaded.model->config().n_layers;
  Found found;
  found.without_planted = planted_layers(loaded.model->file(), n_layers);
  Executor executor(loaded.model, {.kv = {.n_cells = cells_for(prompts, options)}});
  PassCosts costs(
      calibrated(executor, [&](double share) { engine.progress("measuring this machine", share); }));

  const InterruptGuard guard;
  const auto is_interrupted = [&] {
    found.is_interrupted |= InterruptGuard::take();
    return found.is_interrupted;
  };
  std::vector<SearchText> texts = shown_answers(executor, loaded, prompts,
                                                {.what = "answering",
                                                 .generation = greedy_options(options.texts.n_tokens),
                                                 .is_cancelled = is_interrupted});
  LayerOrigin how{.method = options.search.method,
                  .objective = options.is_measured() ? "measured" : "expected",
                  .n_texts = static_cast<int>(texts.size())};
  for (const SearchText& text : texts)
    how.n_tokens += static_cast<int>(text.tokens.size() - text.n_prompt);
  if (texts.empty() && !found.is_interrupted) {
    fail(ErrorCode::kInvalidArgument,
         "the model answers none of the prompts: give others, or more (--texts)");
  }

  LayerSearchOptions searching = options.search;
  searching.is_cancelled = is_interrupted;
  const Stopwatch watch;
  LayerSearchResult result;
  if (!is_interrupted()) {
    const auto objective = [&]() -> std::unique_ptr<LayerObjective> {
      if (!options.is_measured()) {
        auto expected = std::make_unique<ExpectedSpeed>(executor, costs, std::move(texts));
        if (options.n_context > 0) expected->cost_behind(options.n_context);
        return expected;
      }
      // What is found quickly is found by what is expected.
      if (begins_with_quick_sets(options.search.method)) {
        searching.first_sets = ExpectedSpeed(executor, costs, texts).quick_sets();
      }
      return std::make_unique<MeasuredSpeed>(executor, costs, loaded.vocabulary,
                                             MethodOptions().selfsd.draft, std::move(texts));
    }();
    result = shown_search(*objective, n_layers, searching, "searching");
    found.seconds = watch.seconds();
    if (found.without_planted) found.planted_speedup = objective->speedup(*found.without_planted);
  }
  if (result.n_candidates == 0) {
    fail(ErrorCode::kInvalidArgument, "interrupted before the first candidate: nothing was written");
  }
  KeptLayers kept = kept_layers(std::move(result), how);
  found.file = {
      .model = loaded.model->fingerprint(), .layers = kept.layers, .found = std::move(kept.found)};
  found.file.save(options.output);
  print(options, found);
}

}  // namespace

void add_layers_search_command(CLI::App& layers) {
  auto options = std::make_shared<SearchOptions>();
  CLI::App* command = layers.add_subcommand(
      "search", "Find the blocks that the model drafts well without, for --spec selfsd");
  command
      ->add_option("--prompts", options->prompts,
                   "JSONL file as 'bench spec' reads it; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->required();
  command->add_option("-o,--output", options->output, "The file to write")->required();
  add_text_options(*command, options->texts, "Prompts that are used, alike of every category");
  add_layer_search_options(*command, options->search);
  command
      ->add_option("--objective", options->objective,
                   "expected: by agreement and measured costs, without noise. measured: by drafting, "
                   "much slower (default: measured for selfsd, expected for the others)")
      ->check(CLI::IsMember({"expected", "measured"}));
  command
      ->add_option("--context", options->n_context,
                   "Count costs as behind so many tokens, with the expected objective (default: the "
                   "texts' own)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag("--json", options->json, "Print one JSON object");
  add_model_options(*command, options->model);
  command->callback([options] { search(*options); });
}

}  // namespace forerun
