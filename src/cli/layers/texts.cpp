#include "cli/layers/texts.h"

#include <fmt/format.h>

#include "cli/number_range.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "prompts/prompts.h"

namespace forerun {

void add_text_options(CLI::App& command, TextOptions& options, const std::string& n_texts_help) {
  command.add_option("--texts", options.n_texts, n_texts_help)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--tokens", options.n_tokens, "Tokens of each answer")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
}

void add_layer_search_options(CLI::App& command, LayerSearchOptions& options) {
  const auto methods = layer_search_methods();
  command.add_option("--method", options.method, "How candidates are found")
      ->check(CLI::IsMember(std::vector<std::string>(methods.begin(), methods.end())))
      ->capture_default_str();
  command.add_option("--candidates", options.max_candidates, "Candidates at most")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      .add_option("--patience", options.max_without_progress,
                  "Candidates without a better one that end a search")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command.add_option("--skip", options.skip, "Share of the blocks that swift leaves out")
      ->check(number_range(0.0, 0.9))
      ->capture_default_str();
  command.add_option("--cap", options.cap, "Share of the blocks' weight that knapspec may leave out")
      ->check(number_range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of the search")->capture_default_str();
}

std::vector<std::vector<TokenId>> prompts_of(const LoadedModel& loaded,
                                             const std::vector<std::string>& files, int n) {
  std::vector<BenchPrompt> all;
  for (const std::string& file : files) {
    for (BenchPrompt& prompt : read_prompts(file).prompts) all.push_back(std::move(prompt));
  }
  std::vector<std::vector<TokenId>> prompts;
  for (const BenchPrompt& prompt : limited(all, n)) {
    prompts.push_back(prompt_for(loaded, prompt.turns.front()));
    if (prompts.back().empty()) fail(ErrorCode::kInvalidArgument, "prompt {} is empty", prompt.id);
  }
  return prompts;
}

std::vector<SearchText> shown_answers(Executor& executor, const LoadedModel& loaded,
                                      const std::vector<std::vector<TokenId>>& prompts,
                                      const AnswerWork& work) {
  WorkProgress progress(work.what);
  return answer_prompts(executor, loaded.vocabulary, prompts,
                        {.generation = work.generation,
                         .progress = [&](double share) { progress.show(share); },
                         .is_cancelled = work.is_cancelled});
}

LayerSearchResult shown_search(LayerObjective& objective, int n_layers, LayerSearchOptions options,
                               const std::string& what) {
  WorkProgress progress(what);
  options.progress = [&](const LayerSearchProgress& at) {
    progress.show(static_cast<double>(at.n_candidates) / at.max_candidates,
                  fmt::format(", {:.2f}x without {} blocks", at.best_speedup, at.n_skipped));
  };
  return search_layers(objective, n_layers, options);
}

KeptLayers kept_layers(LayerSearchResult result, const LayerOrigin& how) {
  // Not to draft is a choice too.
  const bool pays = result.speedup > 1 && !result.layers.is_full();
  KeptLayers kept{.layers = pays ? result.layers : LayerSet::full(result.layers.n_layers()),
                  .found = how};
  kept.found.speedup = pays ? result.speedup : 1;
  kept.found.n_candidates = result.n_candidates;
  kept.found.best_so_far = std::move(result.best_so_far);
  return kept;
}

std::optional<LayerSet> planted_layers(const GgufFile& file, int n_layers) {
  const auto blocks = file.metadata().get_int_array("forerun.planted_blocks");
  if (!blocks) return std::nullopt;
  LayerSet layers = LayerSet::full(n_layers);
  for (const int64_t block : *blocks) {
    if (block < 0 || block >= layers.n_blocks()) {
      fail(ErrorCode::kInvalidFile, "{} names a block {} that it has not", file.path().string(), block);
    }
    layers.set(BlockId{static_cast<int32_t>(block)}, false);
  }
  return layers;
}

std::string planted_words(const LayerSet& layers, const LayerSet& without_planted) {
  int n_planted = 0, n_found = 0, n_others = 0;
  for (int b = 0; b < layers.n_blocks(); ++b) {
    const bool is_planted = !without_planted.runs(BlockId{b});
    const bool is_skipped = !layers.runs(BlockId{b});
    n_planted += is_planted ? 1 : 0;
    n_found += is_planted && is_skipped ? 1 : 0;
    n_others += !is_planted && is_skipped ? 1 : 0;
  }
  return fmt::format("{} of {} planted blocks left out, and {} others", n_found, n_planted, n_others);
}

}  // namespace forerun
