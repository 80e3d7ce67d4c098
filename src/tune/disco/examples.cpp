#include "tune/disco/examples.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "model/foreign_text.h"
#include "model/own_sequence.h"

namespace forerun {
namespace {

// Tokens of a pass. With layers left out, a draft reads the full model's keys and values but for
// those of its last few tokens: so few.
constexpr size_t kTogether = 32;
constexpr size_t kTogetherWithLayersLeftOut = 6;

// The probability that two distributions share: 1 minus their total variation distance.
double shared(const Distribution& a, const Distribution& b) {
  std::unordered_map<int32_t, float> of_a;
  for (size_t i = 0; i < a.size(); ++i) of_a.emplace(to_int(a.tokens[i]), a.logprobs[i]);
  double sum = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const auto same = of_a.find(to_int(b.tokens[i]));
    if (same != of_a.end()) sum += std::exp(static_cast<double>(std::min(same->second, b.logprobs[i])));
  }
  return std::min(1.0, sum);
}

}  // namespace

ExampleCollector::ExampleCollector(Executor& target, const ExampleDrafter& drafter)
    : target_(target), drafter_(drafter) {}

const PassResult& ExampleCollector::forward(Executor& executor, SequenceId sequence,
                                            std::span<const TokenId> tokens, const LayerSet& layers,
                                            std::vector<NodeId>& path) {
  path.clear();
  pass_.rows.clear();
  pass_.layers = layers;
  for (const TokenId token : tokens) {
    const auto node =
        executor.cells().extend(sequence, path.empty() ? std::nullopt : std::optional(path.back()));
    if (!node) {
      fail(ErrorCode::kInvalidArgument, "a text does not fit into the context: use shorter prompts");
    }
    path.push_back(*node);
    pass_.rows.push_back({.sequence = sequence,
                          .node = *node,
                          .token = known_tokens(executor.model(), token),
                          .logits = true});
  }
  return executor.forward(pass_);
}

void ExampleCollector::collect(const SearchText& text, const Sampler& sampler,
                               std::vector<DiscoExample>& examples) {
  if (text.tokens.size() < text.n_prompt + 2) return;
  Executor& draft = *drafter_.executor;
  const bool is_itself = &draft == &target_;
  const LayerSet full = LayerSet::full(target_.model().config().n_layers);
  const auto n_vocab = static_cast<size_t>(sampler.n_vocab());
  const auto tokens = std::span(text.tokens);
  const OwnSequence target_text(target_.cells());
  const OwnSequence draft_text(draft.cells());
  read_all(target_, target_text.id(), tokens.first(text.n_prompt));
  if (!is_itself) {
    read_all(draft, draft_text.id(), known_tokens(draft.model(), tokens.first(text.n_prompt)));
  }

  std::vector<NodeId> path;
  const size_t together = is_itself ? kTogetherWithLayersLeftOut : kTogether;
  const size_t n_last = tokens.size() - 1;  // what follows the last token is not known
  for (size_t begin = text.n_prompt; begin < n_last; begin += together) {
    const auto read = tokens.subspan(begin, std::min(together, n_last - begin));
    const size_t first = examples.size();
    std::vector<Distribution> drafted;
    const SequenceId drafting = is_itself ? target_text.id() : draft_text.id();
    const PassResult& result = forward(draft, drafting, read, drafter_.layers, path);
    for (size_t i = 0; i < read.size(); ++i) {
      const auto logits = fit_logits(result.logits(i), n_vocab, fitted_);
      const int n_answer = static_cast<int>(begin + i + 1 - text.n_prompt);
      examples.push_back({.features = view_.features({.logits = logits,
                                                      .sums = softmax_sums(logits),
                                                      .token = {},
                                                      .probability = 0,
                                                      .depth = 1,
                                                      .n_answer = n_answer})});
      drafted.push_back(sampler.distribution(logits, {}, scratch_));
    }
    if (is_itself) {
      target_.cells().rollback(drafting);
    } else {
      draft.cells().commit(drafting, path);
    }
    const PassResult& verified = forward(target_, target_text.id(), read, full, path);
    for (size_t i = 0; i < read.size(); ++i) {
      const Distribution& target = sampler.distribution(verified.logits(i), {}, scratch_);
      examples[first + i].taken = static_cast<float>(shared(drafted[i], target));
    }
    target_.cells().commit(target_text.id(), path);
  }
}

}  // namespace forerun
