// A world so small that the probabilities of all its texts are known, for tests: two
// models over a few tokens, ways to draft, and a measure of how far the texts that a rule
// lets through are from those probabilities.
//
// The measure is Pearson's chi-square of the first tokens of many texts, one per seed, over
// the quantile that a correct rule exceeds once in a million cases. Seeds are fixed: a test
// of it either always passes or never.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "sampling/keyed_noise.h"
#include "verify/hashed_model.h"

namespace forerun {

constexpr size_t kLength = 3;  // tokens of a text
constexpr int kTexts = 12'000;

enum class Drafts {
  kChosen,       // the draft model's best tokens
  kDrawn,        // drawn from the draft model with the noise that plain decoding draws with
  kDrawnFew,     // one token or three, as the first one decides
  kMixed,        // some nodes drawn, some chosen; drawn ones have a chosen child too
  kSpine,        // drawn; only the first child of a node has children (SWIFT's tree)
  kLikelyDrawn,  // wrong: one draw, offered only if it turned out likely
};

// Two models over a few tokens, the target's sampling options, and how drafts are made.
class World {
 public:
  World(uint64_t seed, int n_vocab, SamplingOptions options, Drafts drafts)
      : target_(2 * seed, n_vocab, 1.5f),
        draft_(2 * seed + 1, n_vocab, 1.5f),
        options_(std::move(options)),
        drafts_(drafts) {}

  int n_vocab() const { return target_.n_vocab(); }

  Text generate(uint64_t seed, const Verifier& verifier) {
    SamplingOptions options = options_;
    options.seed = seed;
    const Sampler sampler(options, n_vocab());
    Text text;
    while (text.size() < kLength) {
      make_draft(seed, text);
      append(tree_, verify_draft(target_, sampler, text, tree_, verifier), text);
    }
    text.resize(kLength);
    return text;
  }

  // The probabilities of all texts.
  std::map<Text, double> exact() const {
    SamplingOptions options = options_;
    options.seed = 0;
    const Sampler sampler(options, n_vocab());
    std::map<Text, double> texts = {{Text{}, 1.0}};
    for (size_t i = 0; i < kLength; ++i) {
      std::map<Text, double> longer;
      for (const auto& [text, probability] : texts) {
        const Distribution p = distribution_behind(target_, sampler, text);
        for (size_t j = 0; j < p.size(); ++j) {
          Text next = text;
          next.push_back(p.tokens[j]);
          longer[next] = probability * std::exp(static_cast<double>(p.logprobs[j]));
        }
      }
      texts = std::move(longer);
    }
    return texts;
  }

 private:
  static constexpr int kDepth = 2;

  const Distribution& draft_distribution(const Text& text) {
    const auto [it, is_new] = distributions_.try_emplace(text);
    if (is_new) {
      SamplingOptions options;
      options.temperature = 0.9f;
      options.top_k = n_vocab() - 1;  // the draft model never says what it finds least likely
      options.top_p = 1;
      options.min_p = 0;
      options.seed = 0;
      it->second = distribution_behind(draft_, Sampler(options, n_vocab()), text);
    }
    return it->second;
  }

  // Tokens by falling log-probability, with the noise added or without.
  static std::vector<TokenId> ranked(const Distribution& q, const KeyedNoise* noise, Position position) {
    std::vector<std::pair<double, TokenId>> scores;
    for (size_t i = 0; i < q.size(); ++i) {
      const double g = noise ? KeyedNoise::gumbel(noise->bits(position, q.tokens[i])) : 0.0;
      scores.emplace_back(-static_cast<double>(q.logprobs[i]) - g, q.tokens[i]);
    }
    std::sort(scores.begin(), scores.end());
    std::vector<TokenId> out;
    for (const auto& [score, token] : scores) out.push_back(token);
    return out;
  }

  void make_draft(uint64_t seed, const Text& text) {
    tree_.clear();
    const KeyedNoise noise(seed);
    for (int32_t node = kRoot; node < tree_.size(); ++node) {
      if (tree_.depth(node) == kDepth) continue;
      const bool is_first = node == kRoot || tree_.first_child(tree_[node].parent) == node;
      if (drafts_ == Drafts::kSpine && !is_first) continue;
      add_children(text_behind(text, tree_, node), noise, node);
    }
  }

  void add_children(const Text& text, const KeyedNoise& noise, int32_t node) {
    const Distribution& q = draft_distribution(text);
    const int32_t last = text.empty() ? 0 : to_int(text.back());
    const bool drawn = drafts_ != Drafts::kChosen && !(drafts_ == Drafts::kMixed && last % 2 == 1);
    const std::vector<TokenId> tokens = ranked(q, drawn ? &noise : nullptr, end_of(text));
    size_t n = 2;
    if (drafts_ == Drafts::kDrawnFew) n = to_int(tokens.front()) % 2 == 0 ? 3 : 1;
    if (drafts_ == Drafts::kLikelyDrawn) n = q.logprob(tokens.front()) > std::log(0.4f) ? 1 : 0;
    for (size_t i = 0; i < std::min(n, tokens.size()); ++i)
      tree_.add({.token = tokens[i], .parent = node});
    if (drawn) tree_.set_distribution(node, q);
    if (drafts_ != Drafts::kMixed) return;
    for (int32_t token = 0; token < n_vocab(); ++token) {
      if (q.logprob(TokenId{token}) == -std::numeric_limits<float>::infinity())
        tree_.add({.token = TokenId{token}, .parent = node});
    }
  }

  HashedModel target_;
  HashedModel draft_;
  SamplingOptions options_;
  Drafts drafts_;
  DraftTree tree_;
  std::map<Text, Distribution> distributions_;  // the draft model's
};

// What a chi-square variable exceeds once in a million cases (Wilson, Hilferty 1931).
inline double chi_square_bound(int degrees) {
  constexpr double kQuantile = 4.7534;  // of the normal distribution
  const double spread = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1 - spread + kQuantile * std::sqrt(spread), 3);
}

// Pearson's statistic over its bound: above 1, the texts have another distribution.
// Texts expected less than 5 times count as one.
inline double deviation(World& world, const Verifier& verifier) {
  std::map<Text, int> counts;
  for (uint64_t seed = 0; seed < kTexts; ++seed) ++counts[world.generate(seed, verifier)];
  double sum = 0;
  int n_cells = 0;
  int n_counted = 0;
  const auto add_cell = [&](double expected, int count) {
    sum += (count - expected) * (count - expected) / expected;
    ++n_cells;
  };
  double rare_expected = 0;
  int rare_count = 0;
  for (const auto& [text, probability] : world.exact()) {
    const double expected = kTexts * probability;
    const auto it = counts.find(text);
    const int count = it == counts.end() ? 0 : it->second;
    n_counted += count;
    if (expected >= 5) {
      add_cell(expected, count);
    } else {
      rare_expected += expected;
      rare_count += count;
    }
  }
  if (n_counted != kTexts) return std::numeric_limits<double>::infinity();  // an impossible text
  if (rare_expected > 0) add_cell(rare_expected, rare_count);
  return sum / chi_square_bound(n_cells - 1);
}

inline std::vector<SamplingOptions> option_sets() {
  SamplingOptions whole;  // the model's own distribution
  whole.temperature = 1;
  whole.top_k = 0;
  whole.top_p = 1;
  whole.min_p = 0;
  SamplingOptions truncated = whole;  // without what the draft model may propose
  truncated.temperature = 0.7f;
  truncated.top_k = 3;
  SamplingOptions penalised = whole;
  penalised.frequency_penalty = 0.8f;
  penalised.temperature = 0.6f;
  return {whole, truncated, penalised};
}

}  // namespace forerun
