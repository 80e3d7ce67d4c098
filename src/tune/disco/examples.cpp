#include "tune/disco/examples.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "model/foreign_text.h"
#include "model/own_sequence.h"

namespace forerun {
namespace {

// Tokens of a pass. With layers left out, a draft reads the full model's keys and values but for
// those of its last few tokens: so few.
constexpr size_t kTogether = 32;
constexpr size_t kTogetherWithLayersLeftOut = 6;

// What a token's chance is. p is the target's distribution at a place and q the draft's, both as the
// sampler leaves them. A classifier sees q and the place, and not which token was drawn from q. So
// what it should say is the chance that whatever is drawn from q is taken, over all that is random at
// this place: noise is keyed by position, so it does not depend on the text before, nor p and q on it.
// What became of one draw, 0 or 1, has the same mean and tells less.
//
// match. Both draw with the same Gumbel noise g(y) (sampling/sampler.h): the target the y of the
// largest log p(y) + g(y), the draft that of log q(y) + g(y). With e(y) = exp(-g(y)), which is
// exponentially distributed with mean 1, these are the least e(y) / p(y) and the least e(y) / q(y).
// Both are x if e(y) >= e(x) m(y) for all other y, where m(y) = max(p(y) / p(x), q(y) / q(x)). Given
// that e(x) = t, the chance of it is exp(-t M), M the sum of m(y) over these y; the integral of
// exp(-t) exp(-t M) over t is 1 / (1 + M). Two x exclude each other, so their chances add up.
//   The first of the two ratios is the larger where p(y) / q(y) > p(x) / q(x). So with tokens in
// falling order of p / q, 1 + M is p of all up to x over p(x), and q of all behind x over q(x).
//   As m(y) <= max(p(y), q(y)) / min(p(x), q(x)), the chance is at least (1 - d) / (1 + d), with d the
// total variation distance; no way to draw two tokens makes it more than 1 - d.
//
// target. The token x is taken if a number that has nothing to do with it is below p(x): the mean over
// q is the sum of q(x) p(x).
//
// leviathan, rejection. x is taken with the chance min(1, p(x) / q(x)): the sum of min(q(x), p(x)),
// 1 - d. Drafts are chains there, for which the two are one.

struct TokenChances {
  double draft = 0;
  double target = 0;
};

// Of every token that either may draw, in no particular order.
std::vector<TokenChances> chances_of(const Distribution& draft, const Distribution& target) {
  std::vector<TokenChances> chances;
  std::unordered_map<int32_t, size_t> places;
  for (size_t i = 0; i < draft.size(); ++i) {
    places.emplace(to_int(draft.tokens[i]), i);
    chances.push_back({.draft = std::exp(static_cast<double>(draft.logprobs[i]))});
  }
  for (size_t i = 0; i < target.size(); ++i) {
    const double chance = std::exp(static_cast<double>(target.logprobs[i]));
    const auto found = places.find(to_int(target.tokens[i]));
    if (found != places.end()) {
      chances[found->second].target = chance;
    } else {
      chances.push_back({.target = chance});
    }
  }
  std::erase_if(chances, [](const TokenChances& of) { return of.draft <= 0 && of.target <= 0; });
  return chances;
}

double chance_of_match(std::vector<TokenChances> chances) {
  const auto ratio = [](const TokenChances& of) {
    return of.draft > 0 ? of.target / of.draft : std::numeric_limits<double>::infinity();
  };
  std::ranges::sort(chances, std::ranges::greater{}, ratio);
  double behind = 0;  // what the draft has behind a token
  for (const TokenChances& of : chances) behind += of.draft;
  double up_to = 0;  // what the target has up to it
  double sum = 0;
  for (const TokenChances& of : chances) {
    up_to += of.target;
    behind -= of.draft;
    if (of.draft <= 0 || of.target <= 0) continue;
    sum += 1 / (up_to / of.target + std::max(behind, 0.0) / of.draft);
  }
  return sum;
}

}  // namespace

double chance_taken(AcceptRule rule, const Distribution& draft, const Distribution& target) {
  std::vector<TokenChances> chances = chances_of(draft, target);
  double sum = 0;
  switch (rule) {
    case AcceptRule::kMatch: sum = chance_of_match(std::move(chances)); break;
    case AcceptRule::kTargetOnly:
      for (const TokenChances& of : chances) sum += of.draft * of.target;
      break;
    case AcceptRule::kLeviathan:
    case AcceptRule::kRejection:
      for (const TokenChances& of : chances) sum += std::min(of.draft, of.target);
      break;
  }
  return std::min(sum, 1.0);
}

ExampleCollector::ExampleCollector(Executor& target, const ExampleDrafter& drafter, AcceptRule rule)
    : target_(target), drafter_(drafter), rule_(rule) {}

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
      examples[first + i].taken = static_cast<float>(chance_taken(rule_, drafted[i], target));
    }
    target_.cells().commit(target_text.id(), path);
  }
}

}  // namespace forerun
