#include "cli/disco/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cli/number_range.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "layers/layer_file.h"

namespace forerun {
namespace {

// At least so many texts are answered side by side.
constexpr int kTogether = 8;

LoadedModel load(const DiscoWorkOptions& options, const EngineOptions& engine) {
  if (!options.draft_model.empty() && !options.layers.empty()) {
    fail(ErrorCode::kInvalidArgument, "give --draft-model or --layers, not both: one of them drafts");
  }
  if (options.draft_model.empty() && options.layers.empty()) {
    fail(
        ErrorCode::kInvalidArgument,
        "say what drafts: a model (--draft-model FILE), or this one without some layers (--layers FILE, "
        "of 'forerun layers search')");
  }
  return load_model(resolve_model(engine.model), options.model.device,
                    [&](double share) { engine.progress("loading", share); });
}

}  // namespace

void add_disco_work_options(CLI::App& command, DiscoWorkOptions& options) {
  command.add_option("--draft-model", options.draft_model,
                     "The model that drafts: path or name of a GGUF file");
  command.add_option("--layers", options.layers,
                     "Or the model itself, with the layers left out that this file names");
  command
      .add_option("--prompts", options.prompts,
                  "JSONL file as 'bench spec' reads it; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->required();
  add_text_options(command, options.texts, "Prompts that are used, alike of every category");
  command
      .add_option("--temp", options.temperatures,
                  "Temperatures of the answers, separated by commas; 0: greedily")
      ->delimiter(',')
      ->check(number_range(0.0, 100.0))
      ->capture_default_str();
  command
      .add_option("--accept", options.accept,
                  "How sampled tokens will be accepted: match, target, leviathan or rejection")
      ->check(CLI::IsMember({"match", "target", "leviathan", "rejection"}))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of whatever is random")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  command.add_flag("--json", options.json, "Print one JSON object");
  add_model_options(command, options.model);
}

DiscoWork::DiscoWork(const DiscoWorkOptions& options)
    : options_(options), engine_(engine_options(options.model, {})), loaded_(load(options, engine_)) {
  const ModelConfig& config = loaded_.model->config();
  if (options.layers.empty()) return;
  const LayerModel identity{.fingerprint = loaded_.model->fingerprint(), .n_layers = config.n_layers};
  layers_ = LayerFile::load(options.layers, identity).layers;
  if (layers_.is_full()) {
    fail(ErrorCode::kInvalidArgument, "{} leaves out nothing: there is nothing to draft with",
         options.layers);
  }
}

int DiscoWork::n_context(const std::vector<std::vector<TokenId>>& prompts) const {
  size_t n = 0;
  for (const auto& prompt : prompts) n = std::max(n, prompt.size());
  const int n_trained = loaded_.model->config().n_ctx_train;
  if (n + static_cast<size_t>(options_.texts.n_tokens) >= static_cast<size_t>(n_trained)) {
    fail(
        ErrorCode::kContextFull,
        "a prompt has {} tokens, and with its answer more than the {} that the model knows: use shorter "
        "prompts",
        n, n_trained);
  }
  return static_cast<int>(n) + options_.texts.n_tokens + 1;
}

void DiscoWork::make_caches(const Room& room) {
  const int n_cells = std::max(room.n_cells, kTogether * room.n_context);
  executor_ = std::make_unique<Executor>(loaded_.model, ExecutorOptions{.kv = {.n_cells = n_cells}});
  if (options_.draft_model.empty()) return;
  draft_models_ = std::make_unique<DraftModels>(DraftModels::Options{.target = loaded_,
                                                                     .device = options_.model.device,
                                                                     .n_slots = room.n_slots,
                                                                     .n_context = room.n_context,
                                                                     .progress = engine_.progress,
                                                                     .warn = engine_.warn});
  draft_ = draft_models_->load({.model = options_.draft_model});
  layers_ = LayerSet::full(draft_->model->config().n_layers);
}

ModelPair DiscoWork::models() const {
  const uint64_t target = loaded_.model->fingerprint();
  return {.target = target, .draft = draft_ != nullptr ? draft_->model->fingerprint() : target};
}

SamplingOptions DiscoWork::sampling(double temperature) const {
  SamplingOptions sampling;
  sampling.temperature = static_cast<float>(temperature);
  sampling.seed = options_.seed;
  return sampling;
}

std::vector<SearchText> DiscoWork::answers(const std::vector<std::vector<TokenId>>& prompts,
                                           double temperature, const std::string& what) {
  AnswerWork work{.what = what, .generation = greedy_options(options_.texts.n_tokens)};
  work.generation.sampling = sampling(temperature);
  work.is_cancelled = [] {
    check_interrupt();
    return false;
  };
  return shown_answers(*executor_, loaded_, prompts, work);
}

void DiscoWork::collect(const std::vector<SearchText>& texts, double temperature,
                        std::vector<DiscoExample>& examples) {
  ExampleCollector collector(
      *executor_,
      {.executor = draft_ != nullptr ? draft_->executor.get() : executor_.get(), .layers = layers_},
      parse_accept_rule(options_.accept).value());
  const Sampler sampler(sampling(temperature), loaded_.model->config().n_vocab);
  WorkProgress progress("drafting");
  for (size_t i = 0; i < texts.size(); ++i) {
    check_interrupt();
    collector.collect(texts[i], sampler, examples);
    progress.show(static_cast<double>(i + 1) / static_cast<double>(texts.size()));
  }
}

std::vector<DiscoExample> DiscoWork::examples(const std::vector<std::vector<TokenId>>& prompts,
                                              const std::string& of) {
  std::vector<DiscoExample> examples;
  for (const double temperature : options_.temperatures) {
    const std::string how = temperature > 0 ? fmt::format("at {}", temperature) : "greedily";
    collect(answers(prompts, temperature, fmt::format("answering {}, {}", of, how)), temperature,
            examples);
  }
  return examples;
}

}  // namespace forerun
