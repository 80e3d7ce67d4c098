// PIA's lookahead: branches seen after the last tokens, in the prompt and in answers.
//
// Zhao et al., "Lookahead: An Inference Acceleration Framework for Large Language Model
// with Lossless Generation Accuracy", KDD 2024 (arXiv 2312.12728), and its code in Painless
// Inference Acceleration. Every place of a prompt adds the branch of the tokens behind it to
// a trie of its request, every place of an answer to a trie that all requests share. A
// draft is what hangs below the last two tokens, or, where that is little, below the last
// one: half of it by frequency in answers, the rest by frequency in the prompt first and in
// answers second.
//
// Where we differ:
// - A request's own prompt is in a trie of its own, not in the shared one under its number.
//   So it ends with the request, and no other request ever sees it.
// - Where more was found than fits, the code means to take half by answers and the rest by
//   both, but mislays the second half: prompts count for nothing then. Ours does as meant.
// - The code cuts prompts and answers at the first end-of-text token, which leaves out most
//   of a chat whose turns end with it. Ours does not.
// - The number of shared nodes is limited, besides the sizes of single trees.
// As there, answers are learnt while they grow, so requests that run side by side learn from
// each other; and a branch of the request's own answer counts as one of the shared trie in
// the statistics.
#pragma once

#include <memory>
#include <set>
#include <span>

#include "core/option_visitor.h"
#include "draft/drafter.h"
#include "draft/text/frequency_trie.h"

namespace forerun {

struct PiaOptions {
  int tokens = 63;           // to draft at most
  int branch = 12;           // tokens of a branch
  int query = 2;             // tokens to match at most
  int max_tree_nodes = 512;  // more are thinned out; of the tree below one token
  int max_nodes = 4 << 20;   // likewise, of all trees together

  void describe(OptionVisitor& visitor) {
    visitor.visit({"tokens", "Tokens to draft at most"}, tokens, {1, 1024});
    visitor.visit({"branch", "Tokens of a branch"}, branch, {1, 256});
    visitor.visit({"query", "Tokens to match at most"}, query, {1, 16});
    visitor.visit({"max-tree-nodes", "Thin out the tree of a token when it has more nodes"},
                  max_tree_nodes, {1, 1 << 30});
    visitor.visit({"max-nodes", "Thin out all trees when they have more nodes (about 40 bytes each)"},
                  max_nodes, {1, 1 << 30});
  }
};

class PiaDrafter : public Drafter {
 public:
  explicit PiaDrafter(PiaOptions options) : options_(options) {}
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override;

  const PiaOptions& options() const { return options_; }
  const FrequencyTrie& answers() const { return answers_; }

  // A place of an answer, with the tokens behind it.
  void learn(std::span<const TokenId> branch) {
    answers_.add(branch);
    grown_.insert(branch.front());
  }
  // An answer has ended: time to thin out trees that grew too large.
  void thin_out();

 private:
  PiaOptions options_;
  FrequencyTrie answers_;
  std::set<TokenId> grown_;  // first tokens of trees that grew since the last thinning
};

}  // namespace forerun
