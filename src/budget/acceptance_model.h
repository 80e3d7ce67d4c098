// How likely the text takes a drafted token: learnt from what became of earlier ones.
//
// Drafters score their proposals, but a score of one method means something else than
// that of another, and than the truth: it depends on the text. This learns, per source,
// proposers, length of the match and score, how often the text took such a node when it had come to
// its parent, and per request how much better or worse its drafts do than that. Old
// observations fade, so that it follows when the text changes.
//
// It learns from every proposal, verified or not: what was not verified is compared with
// the tokens that the text then gets. So it knows what speculation would bring while none
// is done.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "tree/draft_tree.h"

namespace forerun {

// One request's drafts: how they do, and the latest of them.
class RequestAcceptance {
 public:
  // Compared with what the model expects: above 1 its drafts do better.
  double factor() const;

 private:
  friend class AcceptanceModel;
  double accepted_ = 0;
  double expected_ = 0;
  DraftTree tree_;
  int32_t at_ = kNowhere;  // the node of tree_ that the text has come to
  static constexpr int32_t kNowhere = DraftTree::kNone;
};

class AcceptanceModel {
 public:
  // The chance that the text takes each node of `tree`, parents before children.
  void estimate(const DraftTree& tree, const RequestAcceptance& request,
                std::vector<double>& chances) const;

  // The request's text stands at the root of `tree`.
  static void propose(const DraftTree& tree, RequestAcceptance& request);
  // The text went on with `tokens`.
  void observe(std::span<const TokenId> tokens, RequestAcceptance& request);

 private:
  static constexpr int kMatches = 12;
  static constexpr int kScores = 8;
  struct Cell {
    double n_accepted = 0;
    double n_tested = 0;
    void add(bool accepted);
  };
  struct SourceTable {
    std::array<Cell, kScores> by_score;
    std::array<std::array<Cell, kScores>, kMatches> by_match;
  };

  struct Place {
    size_t score;
    size_t match;
  };
  static Place place_of(const DraftTree& tree, int32_t node);
  // Of a node whose parent the text has come to.
  double conditional(const DraftTree& tree, int32_t node) const;
  void learn(const DraftTree& tree, int32_t node, bool accepted);

  static constexpr size_t kProposerSets = size_t{1} << kMaxProposers;
  static size_t table_of(const DraftNode& node) {
    return static_cast<size_t>(node.source) * kProposerSets + node.proposers % kProposerSets;
  }

  std::array<SourceTable, kDraftSources * kProposerSets> tables_;
};

}  // namespace forerun
