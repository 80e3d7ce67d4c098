#include "draft/text/pia.h"

#include <algorithm>
#include <vector>

namespace forerun {
namespace {

// Of the frequency in answers where prompt and answers are weighed together.
constexpr double kAnswerWeight = 1e-4;
// Trees are thinned out once so many have grown.
constexpr size_t kGrownTrees = 1024;

// A node of the prompt's trie and the same node of the answers', either perhaps missing.
struct NodePair {
  int32_t prompt = FrequencyTrie::kNone;
  int32_t answers = FrequencyTrie::kNone;

  bool empty() const { return prompt == FrequencyTrie::kNone && answers == FrequencyTrie::kNone; }
};

struct Branch {
  double rank = 0;
  int order = 0;  // of discovery
  NodePair nodes;
  TokenId token = {};
  float score = 1.0f;
  int depth = 0;
  int32_t parent = kRoot;

  bool operator<(const Branch& other) const {
    return rank != other.rank ? rank < other.rank : order > other.order;
  }
};

// Grows a draft below a node pair, most frequent nodes first. A node's frequency is at
// most its parent's, so the most frequent ones are a tree.
class PiaGrower {
 public:
  PiaGrower(const FrequencyTrie& prompt, const FrequencyTrie& answers, int max_depth)
      : prompt_(prompt), answers_(answers), max_depth_(max_depth) {}

  using Rank = double (*)(float in_prompt, float in_answers);

  // Adds nodes in the order of `rank`, those of rank 0 left out, until `tree` has `size`.
  void grow(NodePair start, Rank rank, int size, int match_length, DraftTree& tree) {
    heap_.clear();
    n_found_ = 0;
    find_candidates({.nodes = start}, kRoot, rank);
    while (tree.size() < size && !heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Branch next = heap_.back();
      heap_.pop_back();
      auto node = tree.find_child(next.parent, next.token);
      if (!node) {
        const bool in_prompt = prompt_.frequency(next.nodes.prompt) > 0.0f;
        node = tree.add({.token = next.token,
                         .parent = next.parent,
                         .score = next.score,
                         .source = in_prompt ? DraftSource::kInput : DraftSource::kDatastore,
                         .match_length = match_length});
      }
      if (next.depth < max_depth_) find_candidates(next, *node, rank);
    }
  }

 private:
  void find_candidates(const Branch& parent, int32_t node, Rank rank) {
    found_.clear();
    for (int32_t child = prompt_.first_child(parent.nodes.prompt); child != FrequencyTrie::kNone;
         child = prompt_.next_sibling(child)) {
      found_.push_back({child, answers_.child(parent.nodes.answers, prompt_.token(child))});
    }
    for (int32_t child = answers_.first_child(parent.nodes.answers); child != FrequencyTrie::kNone;
         child = answers_.next_sibling(child)) {
      if (prompt_.child(parent.nodes.prompt, answers_.token(child)) == FrequencyTrie::kNone) {
        found_.push_back({FrequencyTrie::kNone, child});
      }
    }
    // What was never seen counts as one more branch.
    float total = parent.depth == 0 ? 1.0f : 0.0f;
    for (const NodePair& pair : found_) total += frequency(pair);
    for (const NodePair& pair : found_) {
      const double r = rank(prompt_.frequency(pair.prompt), answers_.frequency(pair.answers));
      if (r <= 0.0) continue;
      const bool in_prompt = pair.prompt != FrequencyTrie::kNone;
      heap_.push_back({.rank = r,
                       .order = n_found_++,
                       .nodes = pair,
                       .token = in_prompt ? prompt_.token(pair.prompt) : answers_.token(pair.answers),
                       .score = parent.score * frequency(pair) / total,
                       .depth = parent.depth + 1,
                       .parent = node});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  float frequency(const NodePair& pair) const {
    return prompt_.frequency(pair.prompt) + answers_.frequency(pair.answers);
  }

  const FrequencyTrie& prompt_;
  const FrequencyTrie& answers_;
  int max_depth_;
  int n_found_ = 0;
  std::vector<Branch> heap_;
  std::vector<NodePair> found_;
};

double by_answers(float /*in_prompt*/, float in_answers) {
  return in_answers;
}
double by_both(float in_prompt, float in_answers) {
  return (1.0 - kAnswerWeight) * in_prompt + kAnswerWeight * in_answers;
}

class PiaRequestDrafter : public RequestDrafter {
 public:
  PiaRequestDrafter(PiaDrafter& method, std::span<const TokenId> prompt)
      : method_(method), last_(prompt.begin(), prompt.end()) {
    for (size_t i = 0; i + 1 < prompt.size(); ++i) prompt_.add(branch_at(prompt, i));
    keep_query();
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const PiaOptions& options = method_.options();
    const int size = std::min(options.tokens, limits.max_nodes);
    const int depth = std::min(options.branch, limits.max_depth);
    if (size < 1 || depth < 1) return;
    PiaGrower grower(prompt_, method_.answers(), depth);
    for (size_t n = last_.size(); n >= 1; --n) {
      const auto query = std::span(last_).last(n);
      const NodePair start = {prompt_.find(query), method_.answers().find(query)};
      if (start.empty()) continue;
      tree.clear();
      const int match_length = static_cast<int>(n);
      grower.grow(start, by_answers, (size + 1) / 2, match_length, tree);
      grower.grow(start, by_both, size, match_length, tree);
      if (tree.size() >= std::min(options.branch - 1, size)) break;
    }
  }

  void append(std::span<const TokenId> tokens) override {
    last_.insert(last_.end(), tokens.begin(), tokens.end());
    keep_query();
    answer_.insert(answer_.end(), tokens.begin(), tokens.end());
    // Only whole branches while the answer grows.
    const size_t length = branch_length();
    size_t n_done = 0;
    for (; n_done + length <= answer_.size(); ++n_done) method_.learn(branch_at(answer_, n_done));
    answer_.erase(answer_.begin(), answer_.begin() + static_cast<ptrdiff_t>(n_done));
  }

  void finish() override {
    for (size_t i = 0; i + 1 < answer_.size(); ++i) method_.learn(branch_at(answer_, i));
    answer_.clear();
    method_.thin_out();
  }

 private:
  // A first token and the branch behind it, which is one longer than a draft, because the
  // second token may be matched too.
  size_t branch_length() const { return static_cast<size_t>(method_.options().branch) + 2; }
  std::span<const TokenId> branch_at(std::span<const TokenId> text, size_t place) const {
    return text.subspan(place, std::min(branch_length(), text.size() - place));
  }
  void keep_query() {
    const auto n_query = static_cast<size_t>(method_.options().query);
    if (last_.size() > n_query)
      last_.erase(last_.begin(), last_.end() - static_cast<ptrdiff_t>(n_query));
  }

  PiaDrafter& method_;
  FrequencyTrie prompt_;
  std::vector<TokenId> last_;    // tokens of the text, for queries
  std::vector<TokenId> answer_;  // the end of the answer, whose branches are not learnt yet
};

}  // namespace

void PiaOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"tokens", "Tokens to draft at most"}, tokens, {1, 1024});
  visitor.visit({"branch", "Tokens of a branch"}, branch, {1, 256});
  visitor.visit({"query", "Tokens to match at most"}, query, {1, 16});
  visitor.visit({"max-tree-nodes", "Thin out the tree of a token when it has more nodes"},
                max_tree_nodes, {1, 1 << 30});
  visitor.visit({"max-nodes", "Thin out all trees when they have more nodes (about 40 bytes each)"},
                max_nodes, {1, 1 << 30});
}

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
      if (tree != FrequencyTrie::kNone && answers_.n_nodes(tree) > options_.max_tree_nodes)
        answers_.squeeze(tree);
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
