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
    for (size_t n = std::min(text_.size(), static_cast<size_t>(options.query)); n >= 1; --n) {
      const auto query = std::span(text_).last(n);
      const Match match = {prompt_.find(query), answers().find(query), static_cast<int>(n)};
      if (match.prompt == FrequencyTrie::kNone && match.answers == FrequencyTrie::kNone) continue;
      tree.clear();
      grow(match, 1.0, {.max_nodes = (size + 1) / 2, .max_depth = depth}, tree);
      grow(match, kAnswerWeight, {.max_nodes = size, .max_depth = depth}, tree);
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
  // A node of the prompt's trie and the same node of the answers', either perhaps missing.
  struct Match {
    int32_t prompt;
    int32_t answers;
    int length;  // tokens of the text that led there
  };
  // What may follow a node of the draft.
  struct Branch {
    Match match;
    TokenId token;
    float score;
    int32_t parent;
  };

  // Grows a draft within limits, most frequent nodes first, where the frequency in answers has this
  // weight and that in the prompt the rest; those of rank 0 are left out. A node's frequency is at most
  // its parent's, so the most frequent ones are a tree.
  void grow(const Match& start, double answer_weight, const DraftLimits& limits, DraftTree& tree) {
    queue_.clear();
    find_candidates(start, answer_weight, tree, kRoot);
    while (tree.size() < limits.max_nodes && !queue_.empty()) {
      const Branch next = queue_.pop().item;
      auto node = tree.find_child(next.parent, next.token);
      if (!node) {
        const bool in_prompt = prompt_.frequency(next.match.prompt) > 0.0f;
        node = tree.add({.token = next.token,
                         .parent = next.parent,
                         .score = next.score,
                         .source = in_prompt ? DraftSource::kInput : DraftSource::kDatastore,
                         .match_length = next.match.length});
      }
      if (tree.depth(*node) < limits.max_depth) find_candidates(next.match, answer_weight, tree, *node);
    }
  }

  // What follows `node` of the tree, which is `match` in the tries.
  void find_candidates(const Match& match, double answer_weight, const DraftTree& tree, int32_t node) {
    found_.clear();
    for (int32_t child = prompt_.first_child(match.prompt); child != FrequencyTrie::kNone;
         child = prompt_.next_sibling(child)) {
      found_.push_back({child, answers().child(match.answers, prompt_.token(child)), match.length});
    }
    for (int32_t child = answers().first_child(match.answers); child != FrequencyTrie::kNone;
         child = answers().next_sibling(child)) {
      if (prompt_.child(match.prompt, answers().token(child)) == FrequencyTrie::kNone) {
        found_.push_back({FrequencyTrie::kNone, child, match.length});
      }
    }
    // What was never seen counts as one more branch.
    float total = node == kRoot ? 1.0f : 0.0f;
    for (const Match& next : found_) total += frequency(next);
    for (const Match& next : found_) {
      const double rank = (1.0 - answer_weight) * prompt_.frequency(next.prompt) +
                          answer_weight * answers().frequency(next.answers);
      if (rank <= 0.0) continue;
      const bool in_prompt = next.prompt != FrequencyTrie::kNone;
      const TokenId token = in_prompt ? prompt_.token(next.prompt) : answers().token(next.answers);
      // Of equals the one that was found first, however deep.
      queue_.push(rank, 0, {next, token, tree.score(node) * frequency(next) / total, node});
    }
  }

  const FrequencyTrie& answers() const { return method_.answers(); }
  float frequency(const Match& match) const {
    return prompt_.frequency(match.prompt) + answers().frequency(match.answers);
  }

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
  // Reused from draft to draft.
  BestFirst<double, Branch> queue_;
  std::vector<Match> found_;
};

}  // namespace

std::unique_ptr<RequestDrafter> PiaDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<PiaRequestDrafter>(*this, prompt);
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
