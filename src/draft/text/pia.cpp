#include "draft/text/pia.h"

#include <algorithm>
#include <vector>

#include "tree/best_first.h"

namespace forerun {
namespace {

// Of the frequency in answers where prompt and answers are weighed together.
constexpr double kAnswerWeight = 1e-4;
// Trees are thinned out once so many have grown.
constexpr size_t kGrownTrees = 1024;

// A node of the prompt's trie and the same node of the answers', either perhaps missing.
struct NodePair {
  int32_t prompt;
  int32_t answers;
};

// Grows a draft below a node pair, most frequent nodes first. A node's frequency is at
// most its parent's, so the most frequent ones are a tree.
class PiaGrower {
 public:
  PiaGrower(const FrequencyTrie& prompt, const FrequencyTrie& answers, int max_depth)
      : prompt_(prompt), answers_(answers), max_depth_(max_depth) {}

  // Adds nodes until `tree` has `size`, in the order of their frequencies, of which that in answers has
  // this weight and that in the prompt the rest. Those of rank 0 are left out.
  void grow(NodePair start, double answer_weight, int size, int match_length, DraftTree& tree) {
    queue_.clear();
    find_candidates(start, answer_weight, tree, kRoot);
    while (tree.size() < size && !queue_.empty()) {
      const Branch next = queue_.pop().item;
      auto node = tree.find_child(next.parent, next.token);
      if (!node) {
        const bool in_prompt = prompt_.frequency(next.nodes.prompt) > 0.0f;
        node = tree.add({.token = next.token,
                         .parent = next.parent,
                         .score = next.score,
                         .source = in_prompt ? DraftSource::kInput : DraftSource::kDatastore,
                         .match_length = match_length});
      }
      if (tree.depth(*node) < max_depth_) find_candidates(next.nodes, answer_weight, tree, *node);
    }
  }

 private:
  struct Branch {
    NodePair nodes;
    TokenId token;
    float score;
    int32_t parent;
  };

  // What follows `node` of the tree, which these nodes of the tries are.
  void find_candidates(NodePair nodes, double answer_weight, const DraftTree& tree, int32_t node) {
    found_.clear();
    for (int32_t child = prompt_.first_child(nodes.prompt); child != FrequencyTrie::kNone;
         child = prompt_.next_sibling(child)) {
      found_.push_back({child, answers_.child(nodes.answers, prompt_.token(child))});
    }
    for (int32_t child = answers_.first_child(nodes.answers); child != FrequencyTrie::kNone;
         child = answers_.next_sibling(child)) {
      if (prompt_.child(nodes.prompt, answers_.token(child)) == FrequencyTrie::kNone) {
        found_.push_back({FrequencyTrie::kNone, child});
      }
    }
    // What was never seen counts as one more branch.
    float total = node == kRoot ? 1.0f : 0.0f;
    for (const NodePair& pair : found_) total += frequency(pair);
    for (const NodePair& pair : found_) {
      const double rank = (1.0 - answer_weight) * prompt_.frequency(pair.prompt) +
                          answer_weight * answers_.frequency(pair.answers);
      if (rank <= 0.0) continue;
      const bool in_prompt = pair.prompt != FrequencyTrie::kNone;
      const TokenId token = in_prompt ? prompt_.token(pair.prompt) : answers_.token(pair.answers);
      // Of equals the one that was found first, however deep.
      queue_.push(rank, 0, {pair, token, tree.score(node) * frequency(pair) / total, node});
    }
  }

  float frequency(const NodePair& pair) const {
    return prompt_.frequency(pair.prompt) + answers_.frequency(pair.answers);
  }

  const FrequencyTrie& prompt_;
  const FrequencyTrie& answers_;
  int max_depth_;
  BestFirst<double, Branch> queue_;
  std::vector<NodePair> found_;
};

class PiaRequestDrafter : public RequestDrafter {
 public:
  PiaRequestDrafter(PiaDrafter& method, std::span<const TokenId> prompt)
      : method_(method), text_(prompt.begin(), prompt.end()), n_learnt_(prompt.size()) {
    for (size_t i = 0; i + 1 < prompt.size(); ++i) prompt_.add(branch_at(i));
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const PiaOptions& options = method_.options();
    const int size = std::min(options.tokens, limits.max_nodes);
    const int depth = std::min(options.branch, limits.max_depth);
    if (size < 1 || depth < 1) return;
    PiaGrower grower(prompt_, method_.answers(), depth);
    for (size_t n = std::min(text_.size(), static_cast<size_t>(options.query)); n >= 1; --n) {
      const auto query = std::span(text_).last(n);
      const NodePair start = {prompt_.find(query), method_.answers().find(query)};
      if (start.prompt == FrequencyTrie::kNone && start.answers == FrequencyTrie::kNone) continue;
      tree.clear();
      const int match_length = static_cast<int>(n);
      grower.grow(start, 1.0, (size + 1) / 2, match_length, tree);
      grower.grow(start, kAnswerWeight, size, match_length, tree);
      if (tree.size() >= std::min(options.branch - 1, size)) break;
    }
  }

  void append(std::span<const TokenId> tokens) override {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    // Only whole branches while the answer grows.
    for (; n_learnt_ + branch_length() <= text_.size(); ++n_learnt_) method_.learn(branch_at(n_learnt_));
  }

  void finish() override {
    for (; n_learnt_ + 1 < text_.size(); ++n_learnt_) method_.learn(branch_at(n_learnt_));
    method_.thin_out();
  }

 private:
  // A first token and the branch behind it, which is one longer than a draft, because the
  // second token may be matched too.
  size_t branch_length() const { return static_cast<size_t>(method_.options().branch) + 2; }
  std::span<const TokenId> branch_at(size_t place) const {
    return std::span(text_).subspan(place, std::min(branch_length(), text_.size() - place));
  }

  PiaDrafter& method_;
  FrequencyTrie prompt_;
  std::vector<TokenId> text_;
  size_t n_learnt_;  // places of the text that are the prompt's, or whose branches answers have
};

}  // namespace

std::unique_ptr<RequestDrafter> PiaDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<PiaRequestDrafter>(*this, prompt);
}

void PiaDrafter::learn(std::span<const TokenId> branch) {
  answers_.add(branch);
  grown_.insert(branch.front());
}

void PiaDrafter::thin_out() {
  if (grown_.size() >= kGrownTrees) {
    for (const TokenId first : grown_) {
      const int32_t tree = answers_.child(FrequencyTrie::kTop, first);
      if (answers_.n_nodes(tree) > options_.max_tree_nodes) answers_.squeeze(tree);
    }
    grown_.clear();
  }
  while (answers_.n_nodes() > options_.max_nodes) {
    for (int32_t tree = answers_.first_child(FrequencyTrie::kTop); tree != FrequencyTrie::kNone;
         tree = answers_.next_sibling(tree)) {
      answers_.squeeze(tree);
    }
  }
}

}  // namespace forerun
