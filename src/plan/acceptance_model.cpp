#include "plan/acceptance_model.h"

#include <algorithm>
#include <cmath>

namespace forerun {
namespace {

// How far one observation moves a weight: much at first, and never nothing.
constexpr double kFirstRate = 0.18;
constexpr double kRateMemory = 8;
constexpr double kSlowestRate = 0.015;
// The same for a request's own weight, which fades.
constexpr double kBiasRate = 0.06;
constexpr double kBiasKept = 0.99;
// Until something is known: the chance that the text takes none of the proposals, where texts make
// them and where a model does.
constexpr double kNoneOfTexts = 0.2;
constexpr double kNoneOfModel = 0.1;
constexpr double kMostLogit = 30;
// In logits: continuations of short matches are taken less often, and those that were seen once. As it
// was learnt of answers of small models to questions, tasks and programs, greedy and drawn at 0.8 alike.
constexpr auto kFirstByMatch = std::to_array<double>({-1.0, -0.7, -0.25, -0.05, 0.15, 0.3});
constexpr auto kFirstBySeen = std::to_array<double>({0.0, -0.4, 0.15});

// What is known of a node: texts propose it, and no model was asked; or texts do and this model was
// asked; or this model alone proposes it. What a model is sure of, and what the next tokens are worth
// that it did not draft, is another matter with each.
using Kind = size_t;
constexpr Kind kText = 0;
constexpr Kind both(size_t model) {
  return 1 + 2 * model;
}
constexpr Kind model_alone(size_t model) {
  return 2 + 2 * model;
}
constexpr size_t kKinds = 1 + 2 * kMaxModelDrafters;

constexpr auto kShares = std::to_array<double>({0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97});
// By halves towards 0 and towards 1, where most are.
constexpr size_t kLowBins = 7, kHighBins = 11;
constexpr size_t kProposerSets = size_t{1} << kMaxProposers;

// The weights of a property's bins, of each kind for itself. The last bin has all that lies beyond.
struct Property {
  size_t first_weight;
  size_t n_bins;

  constexpr size_t end() const { return first_weight + kKinds * n_bins; }
  constexpr size_t weight(Kind kind, size_t bin) const {
    return first_weight + kind * n_bins + std::min(bin, n_bins - 1);
  }
};
// Behind those of who proposes.
constexpr Property kByShare{kDraftSources * kProposerSets, kShares.size() + 1};
constexpr Property kByProbability{kByShare.end(), kLowBins + kHighBins};
constexpr Property kByMatch{kByProbability.end(), 14};
constexpr Property kBySeen{kByMatch.end(), 6};
constexpr Property kByRank{kBySeen.end(), 4};
constexpr Property kByDepth{kByRank.end(), 6};

size_t share_bin(double share) {
  return static_cast<size_t>(std::ranges::lower_bound(kShares, share) - kShares.begin());
}

size_t probability_bin(double probability) {
  if (probability < 0.5) {
    const double halvings = -std::log2(std::max(probability, 1e-6)) - 1;  // 0 at a half
    return kLowBins - 1 - std::min(kLowBins - 1, static_cast<size_t>(halvings));
  }
  const double halvings = -2 * std::log2(std::max(1 - probability, 1e-6)) - 2;
  return kLowBins + static_cast<size_t>(std::max(0.0, halvings));
}

double middle_of_probability_bin(size_t bin) {
  if (bin < kLowBins) return std::exp2(-(static_cast<double>(kLowBins - 1 - bin) + 1.5));
  return 1 - std::exp2(-(static_cast<double>(bin - kLowBins) + 2.5) / 2);
}

size_t seen_bin(int n_seen) {
  return static_cast<size_t>(n_seen <= 2 ? n_seen : n_seen <= 4 ? 3 : n_seen <= 8 ? 4 : 5);
}

size_t depth_bin(int depth) {
  return static_cast<size_t>(depth <= 3 ? depth - 1 : depth <= 5 ? 3 : depth <= 9 ? 4 : 5);
}

// What the drafter makes of a node, if the text comes to its parent.
double relative_score(const DraftTree& tree, int32_t node) {
  const int32_t parent = tree[node].parent;
  const double above = parent == kRoot ? 1.0 : static_cast<double>(tree[parent].score);
  return above > 0 ? std::clamp(static_cast<double>(tree[node].score) / above, 0.0, 1.0) : 0.0;
}

bool has_text(const DraftNode& node) {
  return node.proposers % text_bit(kMaxTextDrafters) != 0;
}

Kind kind_of(const DraftNode& node, size_t model) {
  if (!has_text(node)) return model_alone(model);
  return node.probability >= 0 ? both(model) : kText;
}

double worth(const DraftNode& node) {
  return node.probability >= 0 ? node.probability : node.score;
}

size_t rank_of(const DraftTree& tree, int32_t node) {
  size_t n_better = 0;
  for (const int32_t other : tree.children(tree[node].parent)) {
    const double difference = worth(tree[other]) - worth(tree[node]);
    n_better += difference > 0 || (difference == 0 && other < node) ? 1 : 0;
  }
  return n_better;
}

}  // namespace

AcceptanceModel::AcceptanceModel() : weights_(kByDepth.end()) {
  const auto begin_with = [&](const Property& property, Kind kind, const auto& value) {
    for (size_t bin = 0; bin < property.n_bins; ++bin)
      weights_[property.weight(kind, bin)].value = value(bin);
  };
  // What drafters say of their proposals is the first guess.
  begin_with(kByShare, kText, [](size_t bin) {
    const double low = bin == 0 ? 0 : kShares[bin - 1];
    const double high = bin == kShares.size() ? 1 : kShares[bin];
    return std::log((1 - kNoneOfTexts) * (low + high) / 2 / kNoneOfTexts);
  });
  const auto of_model = [](size_t bin) {
    return std::log(middle_of_probability_bin(bin) / kNoneOfModel);
  };
  for (size_t model = 0; model < kMaxModelDrafters; ++model) {
    begin_with(kByProbability, both(model), of_model);
    begin_with(kByProbability, model_alone(model), of_model);
  }
  const auto listed = [](const auto& values) {
    return [&values](size_t bin) { return values[std::min(bin, values.size() - 1)]; };
  };
  begin_with(kByMatch, kText, listed(kFirstByMatch));
  begin_with(kBySeen, kText, listed(kFirstBySeen));
}

AcceptanceModel::Features AcceptanceModel::features_of(const ProposedTree& proposed,
                                                       int32_t index) const {
  const DraftTree& tree = proposed.tree;
  const DraftNode& node = tree[index];
  const Kind kind = kind_of(node, proposed.model);
  const int depth = tree.depth(index);
  Features features;
  features.add(static_cast<size_t>(node.source) * kProposerSets + node.proposers % kProposerSets);
  features.add(kByRank.weight(kind, rank_of(tree, index)));
  features.add(kByDepth.weight(kind, depth_bin(depth)));
  if (kind != kText) features.add(kByProbability.weight(kind, probability_bin(node.probability)));
  if (has_text(node)) {
    // Every token that the text took since lengthens the match.
    const int match = std::max(0, node.match_length + depth - 1);
    features.add(kByShare.weight(kind, share_bin(relative_score(tree, index))));
    features.add(kByMatch.weight(kind, static_cast<size_t>(match)));
    features.add(kBySeen.weight(kind, seen_bin(std::max(0, node.n_seen))));
  }
  return features;
}

double AcceptanceModel::bias_of(const ProposedTree& proposed, int32_t index,
                                const RequestAcceptance& request) const {
  if (proposed.tree[index].probability < 0) return request.text_bias_;
  const double bias = request.model_biases_[proposed.model];
  if (!proposed.is_on_spine(index)) return bias;
  return bias + chains_[proposed.model].known_otherwise(proposed.agreement);
}

// Against none of the siblings.
double AcceptanceModel::odds_of(const Features& features, double bias) const {
  double sum = bias;
  for (size_t i = 0; i < features.n; ++i) sum += weights_[features.weights[i]].value;
  return std::exp(std::clamp(sum, -kMostLogit, kMostLogit));
}

void AcceptanceModel::learn(const Features& features, double error) {
  for (size_t i = 0; i < features.n; ++i) {
    Weight& weight = weights_[features.weights[i]];
    const double rate = kFirstRate / std::sqrt(1 + weight.n_seen / kRateMemory);
    weight.value += std::max(kSlowestRate, rate) * error;
    weight.n_seen = std::min(weight.n_seen + 1, kMostSeen);
  }
}

// Parents before children: a node's chance is a part of its parent's.
void AcceptanceModel::estimate(const ProposedTree& proposed, const RequestAcceptance& request,
                               std::vector<double>& chances) const {
  const DraftTree& tree = proposed.tree;
  chances.resize(static_cast<size_t>(tree.size()));
  for (int32_t parent = kRoot; parent < tree.size(); ++parent) {
    double all = 1;
    for (const int32_t child : tree.children(parent)) {
      const double odds = odds_of(features_of(proposed, child), bias_of(proposed, child, request));
      chances[static_cast<size_t>(child)] = odds;
      all += odds;
    }
    const double above = parent == kRoot ? 1.0 : chances[static_cast<size_t>(parent)];
    for (const int32_t child : tree.children(parent)) {
      double& chance = chances[static_cast<size_t>(child)];
      chance = above * std::min(chance / all, kMaxChance);
    }
  }
}

void AcceptanceModel::propose(const ProposedTree& proposed, RequestAcceptance& request) {
  if (proposed.tree.empty()) return;  // what was proposed before may still come
  request.proposed_ = proposed;
  request.at_ = kRoot;
}

void AcceptanceModel::observe(std::span<const TokenId> tokens, RequestAcceptance& request) {
  for (const TokenId token : tokens) {
    if (request.at_ == DraftTree::kNone) return;
    observe_spine(token, request);
    observe_children(token, request);
    request.at_ = request.proposed_.tree.find_child(request.at_, token).value_or(DraftTree::kNone);
  }
}

void AcceptanceModel::observe_children(TokenId token, RequestAcceptance& request) {
  const DraftTree& tree = request.proposed_.tree;
  proposals_.clear();
  double all = 1;
  for (const int32_t child : tree.children(request.at_)) {
    const Features features = features_of(request.proposed_, child);
    const double odds = odds_of(features, bias_of(request.proposed_, child, request));
    proposals_.push_back({.features = features, .odds = odds, .node = child});
    all += odds;
  }
  if (proposals_.empty()) return;
  double text_error = 0, model_error = 0;
  for (const Proposal& proposal : proposals_) {
    const DraftNode& node = tree[proposal.node];
    const double error = (node.token == token ? 1 : 0) - proposal.odds / all;
    learn(proposal.features, error);
    (node.probability >= 0 ? model_error : text_error) += error;
  }
  const auto follow = [](double& bias, double error) { bias = kBiasKept * bias + kBiasRate * error; };
  follow(request.text_bias_, text_error);
  follow(request.model_biases_[request.proposed_.model], model_error);
}

// What could be expected of the spine's next token before it was drafted.
void AcceptanceModel::observe_spine(TokenId token, RequestAcceptance& request) {
  const ProposedTree& proposed = request.proposed_;
  const DraftTree& tree = proposed.tree;
  const bool is_first = request.at_ == kRoot;
  if (!is_first && !proposed.is_on_spine(request.at_)) return;
  const auto at = static_cast<size_t>(tree.depth(request.at_));
  if (at >= proposed.spine.size()) return;
  const DraftNode& next = tree[proposed.spine[at]];
  const DraftedBehind behind =
      is_first ? DraftedBehind::kText : behind_token(tree[request.at_].probability);
  chains_[proposed.model].observe(behind, next.probability, next.token == token);
}

std::vector<float> AcceptanceModel::learnt() const {
  std::vector<float> numbers;
  for (const Weight& weight : weights_) {
    numbers.push_back(static_cast<float>(weight.value));
    numbers.push_back(static_cast<float>(weight.n_seen));
  }
  for (const ChainRecord& chain : chains_) chain.add_to(numbers);
  return numbers;
}

bool AcceptanceModel::restore(std::span<const float> learnt) {
  const size_t n_weights = 2 * weights_.size();
  if (learnt.size() != n_weights + kMaxModelDrafters * ChainRecord::kNumbers) return false;
  if (!std::ranges::all_of(learnt, [](float x) { return std::isfinite(x); })) return false;
  for (size_t i = 0; i < weights_.size(); ++i) {
    weights_[i] = {.value = learnt[2 * i], .n_seen = std::max(0.0f, learnt[2 * i + 1])};
  }
  for (size_t i = 0; i < chains_.size(); ++i) {
    chains_[i].restore(learnt.subspan(n_weights + i * ChainRecord::kNumbers, ChainRecord::kNumbers));
  }
  return true;
}

}  // namespace forerun
