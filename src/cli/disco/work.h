// What `forerun disco train` and `forerun disco eval` share: two models, prompts, and examples of
// what the one drafts and the other takes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/draft_models.h"
#include "cli/layers/texts.h"
#include "cli/model_options.h"
#include "engine/loaded_model.h"
#include "stopping/disco.h"
#include "tune/disco/examples.h"

namespace forerun {

struct DiscoWorkOptions {
  ModelOptions model;
  std::string draft_model;  // empty: the model drafts for itself
  std::string layers;       // a file of 'forerun layers search'
  std::vector<std::string> prompts;
  TextOptions texts{.n_texts = 400, .n_tokens = 96};
  std::vector<double> temperatures = {0.0};  // 0: greedily
  std::string accept = "match";              // an AcceptRule, whose chances sampled tokens have
  uint64_t seed = 1;
  bool json = false;
};
// --draft-model, --layers, --prompts, --texts, --tokens, --temp, --accept, --seed, --json, and a
// model's own.
void add_disco_work_options(CLI::App& command, DiscoWorkOptions& options);

// The two models, with caches.
class DiscoWork {
 public:
  explicit DiscoWork(const DiscoWorkOptions& options);

  const LoadedModel& loaded() const { return loaded_; }

  struct Room {
    int n_context = 0;  // tokens of a text at most
    int n_cells = 0;    // of the target's cache at least
    int n_slots = 1;    // texts that the draft model keeps at once
  };
  // Once, before what follows.
  void make_caches(const Room& room);
  // Tokens of the longest text that comes of these prompts.
  int n_context(const std::vector<std::vector<TokenId>>& prompts) const;

  ModelPair models() const;
  Executor& executor() { return *executor_; }
  const std::shared_ptr<DraftModel>& draft() const { return draft_; }  // nullptr: the model itself
  const LayerSet& layers() const { return layers_; }                   // of what drafts

  SamplingOptions sampling(double temperature) const;
  // Answers at one temperature. `what` is in front of the line that shows how far it is.
  std::vector<SearchText> answers(const std::vector<std::vector<TokenId>>& prompts, double temperature,
                                  const std::string& what);
  // Of all temperatures.
  std::vector<DiscoExample> examples(const std::vector<std::vector<TokenId>>& prompts,
                                     const std::string& of);

 private:
  void collect(const std::vector<SearchText>& texts, double temperature,
               std::vector<DiscoExample>& examples);

  const DiscoWorkOptions& options_;
  EngineOptions engine_;
  LoadedModel loaded_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<DraftModels> draft_models_;
  std::shared_ptr<DraftModel> draft_;
  LayerSet layers_ = LayerSet::full(1);
};

}  // namespace forerun
