#include "draft/text/frequency_trie.h"

#include <map>
#include <vector>

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

// The same by definition: a frequency per branch.
class NaiveTrie {
 public:
  void add(const Tokens& branch) {
    for (size_t n = 1; n <= branch.size(); ++n) ++nodes_[{branch.begin(), branch.begin() + n}];
  }
  void squeeze(TokenId first) {
    std::map<Tokens, double> left;
    for (const auto& [branch, frequency] : nodes_) {
      if (branch.front() != first || branch.size() == 1) {
        left[branch] = frequency;
        continue;
      }
      const Tokens parent(branch.begin(), branch.end() - 1);
      if (frequency > 1.0 && left.contains(parent)) left[branch] = frequency / 2;
    }
    nodes_ = left;
  }
  const std::map<Tokens, double>& nodes() const { return nodes_; }

 private:
  std::map<Tokens, double> nodes_;
};

void collect(const FrequencyTrie& trie, int32_t node, Tokens& branch, std::map<Tokens, double>& out) {
  for (int32_t child = trie.first_child(node); child != FrequencyTrie::kNone;
       child = trie.next_sibling(child)) {
    branch.push_back(trie.token(child));
    out[branch] = trie.frequency(child);
    collect(trie, child, branch, out);
    branch.pop_back();
  }
}

TEST(FrequencyTrie, CountsAndThinsOutAsDefined) {
  std::mt19937 random(3);
  FrequencyTrie trie;
  NaiveTrie naive;
  for (int step = 0; step < 600; ++step) {
    const Tokens branch = random_tokens(random, random_int(random, 1, 6), 3);
    trie.add(branch);
    naive.add(branch);
    if (step % 50 == 49) {
      const TokenId first{random_int(random, 0, 2)};
      trie.squeeze(trie.child(FrequencyTrie::kTop, first));
      naive.squeeze(first);
    }
    if (step % 10 != 9) continue;
    std::map<Tokens, double> found;
    Tokens path;
    collect(trie, FrequencyTrie::kTop, path, found);
    ASSERT_EQ(found, naive.nodes());
    int n_nodes = 0;
    for (int first = 0; first < 3; ++first) {
      const int32_t tree = trie.child(FrequencyTrie::kTop, TokenId{first});
      if (tree != FrequencyTrie::kNone) n_nodes += trie.n_nodes(tree);
    }
    EXPECT_EQ(trie.n_nodes(), n_nodes);
    const auto below =
        std::count_if(found.begin(), found.end(), [](const auto& f) { return f.first.size() > 1; });
    EXPECT_EQ(n_nodes, below);
    EXPECT_EQ(trie.find(branch) != FrequencyTrie::kNone, found.contains(branch));
  }
}

}  // namespace
}  // namespace forerun
