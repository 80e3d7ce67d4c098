// How likely the text takes a drafted token: learnt from what became of earlier ones.
//
// Drafters score their proposals, but a score of one drafter means something else than that of
// another, and than the truth: it depends on the text. The text takes one of the siblings or none, so
// this is a multinomial logistic regression over what is known of each: who proposed it (agreement
// counts), its share among what was seen, how often that was, the length of the match, its depth and
// rank among siblings, and what a model that drafts says of it, each cut into bins that have a weight. A
// request has weights of its own, for texts and for each model: their drafts do better or worse there
// than elsewhere. Rates of learning never fall to nothing, so that it follows when the text changes.
//
// It learns from every proposal, verified or not: what was not verified is compared with
// the tokens that the text then gets. So it knows what speculation would bring while none
// is done.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "plan/chain_outlook.h"
#include "tree/draft_tree.h"

namespace forerun {

// Who proposes what: a bit of DraftNode::proposers for each drafter.
constexpr size_t kMaxTextDrafters = 3;
constexpr size_t kMaxModelDrafters = kMaxProposers - kMaxTextDrafters;
constexpr uint8_t text_bit(size_t drafter) {
  return static_cast<uint8_t>(1u << drafter);
}
constexpr uint8_t model_bit(size_t drafter) {
  return static_cast<uint8_t>(1u << (kMaxTextDrafters + drafter));
}

// A tree of proposals. The path that a model drafted, if one did, is its spine.
struct ProposedTree {
  DraftTree tree;
  std::vector<int32_t> spine = {};
  size_t model = 0;  // that drafted it
  // Of its tokens with the text, as far as that is known without having seen them here.
  std::optional<double> agreement = std::nullopt;

  bool is_on_spine(int32_t node) const {
    const auto depth = static_cast<size_t>(tree.depth(node));
    return depth > 0 && depth <= spine.size() && spine[depth - 1] == node;
  }
  void clear() {
    tree.clear();
    spine.clear();
  }
};

// One request's drafts: how they do, and the latest of them.
class RequestAcceptance {
 private:
  friend class AcceptanceModel;
  double text_bias_ = 0;
  std::array<double, kMaxModelDrafters> model_biases_ = {};
  ProposedTree proposed_;
  int32_t at_ = DraftTree::kNone;  // the node that the text has come to
};

class AcceptanceModel {
 public:
  AcceptanceModel();

  // The chance that the text takes each node of all that is proposed.
  void estimate(const ProposedTree& proposed, const RequestAcceptance& request,
                std::vector<double>& chances) const;
  // What a model has yet to draft for the request; `agreement` as in ChainRecord::known_otherwise().
  ChainOutlook outlook(size_t model, const RequestAcceptance& request,
                       std::optional<double> agreement = std::nullopt) const {
    return chains_[model].outlook(request.model_biases_[model], agreement);
  }
  // How many tokens of this model were compared with the text's.
  double n_known(size_t model) const { return chains_[model].n_seen(); }

  // The request's text stands at the root of the tree.
  static void propose(const ProposedTree& proposed, RequestAcceptance& request);
  // The text went on with `tokens`.
  void observe(std::span<const TokenId> tokens, RequestAcceptance& request);

  // What was learnt, as numbers that another run can begin with. restore: false if they are of
  // another version of this.
  std::vector<float> learnt() const;
  bool restore(std::span<const float> learnt);

 private:
  struct Weight {
    double value = 0;
    double n_seen = 0;
  };
  struct Features {
    std::array<size_t, 7> weights;
    size_t n = 0;
    void add(size_t weight) { weights[n++] = weight; }
  };
  struct Proposal {
    Features features;
    double odds;
    int32_t node;
  };
  Features features_of(const ProposedTree& proposed, int32_t node) const;
  double odds_of(const Features& features, double bias) const;
  void learn(const Features& features, double error);
  void observe_children(TokenId token, RequestAcceptance& request);
  void observe_spine(TokenId token, RequestAcceptance& request);
  double bias_of(const ProposedTree& proposed, int32_t node, const RequestAcceptance& request) const;

  std::vector<Weight> weights_;
  std::array<ChainRecord, kMaxModelDrafters> chains_;
  std::vector<Proposal> proposals_;  // reused
};

}  // namespace forerun
