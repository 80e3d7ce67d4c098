#include "draft/text/pia.h"

#include <map>
#include <set>

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

PiaOptions small() {
  PiaOptions options;
  options.tokens = 7;
  options.branch = 3;
  return options;
}

TEST(Pia, DraftsBranchesOfThePrompt) {
  PiaDrafter method(small());
  const DraftTree tree = draft(*method.begin(ids({1, 2, 3, 4, 5, 1, 2, 6, 7, 1, 2})));
  const auto drafted = paths(tree);
  // Two branches of 3 tokens behind "1 2".
  EXPECT_EQ(drafted.size(), 6u);
  EXPECT_TRUE(drafted.contains(ids({3, 4, 5})));
  EXPECT_TRUE(drafted.contains(ids({6, 7, 1})));
  EXPECT_FLOAT_EQ(drafted.at(ids({3})), 1.0f / 3);  // of two branches and an unseen one
  EXPECT_EQ(tree[0].match_length, 2);
  EXPECT_EQ(tree[0].source, DraftSource::kInput);
}

TEST(Pia, TriesTheLastTokenAloneWhereTwoGiveLittle) {
  PiaDrafter method(small());
  // Behind "1 2" there is one token only, as the prompt ends there.
  const auto drafter = method.begin(ids({2, 8, 9, 5, 1, 2, 3}));
  drafter->append(ids({1, 2}));
  const DraftTree tree = draft(*drafter);
  EXPECT_EQ(tree[0].match_length, 1);
  EXPECT_TRUE(paths(tree).contains(ids({8, 9, 5})));
  EXPECT_TRUE(paths(tree).contains(ids({3})));
}

TEST(Pia, LearnsWholeBranchesAtOnceAndTheRestAtTheEnd) {
  PiaDrafter method(small());
  const auto drafter = method.begin({});
  drafter->append(ids({1, 2, 3, 4}));
  EXPECT_EQ(method.answers().n_nodes(), 0);
  drafter->append(ids({5}));
  EXPECT_NE(method.answers().find(ids({1, 2, 3, 4, 5})), FrequencyTrie::kNone);
  EXPECT_EQ(method.answers().find(ids({2, 3})), FrequencyTrie::kNone);
  drafter->finish();
  EXPECT_NE(method.answers().find(ids({2, 3, 4, 5})), FrequencyTrie::kNone);
  EXPECT_NE(method.answers().find(ids({4, 5})), FrequencyTrie::kNone);
  const DraftTree tree = draft(*method.begin(ids({9, 1})));
  EXPECT_EQ(chain(tree), ids({2, 3, 4}));
  EXPECT_EQ(tree[0].source, DraftSource::kDatastore);
}

TEST(Pia, KeepsPromptsToThemselves) {
  PiaDrafter method(small());
  const auto first = method.begin(ids({1, 2, 3, 4, 5}));
  first->finish();
  EXPECT_TRUE(draft(*method.begin(ids({1, 2}))).empty());
}

// Half of a full draft goes to what answers say most often, the rest to the prompt first.
TEST(Pia, SharesTheDraftBetweenAnswersAndPrompt) {
  PiaOptions options = small();
  options.branch = 1;
  options.tokens = 4;
  options.query = 1;
  PiaDrafter method(options);
  for (int i = 0; i < 3; ++i) {
    for (int next = 10; next < 20; ++next) {
      for (int n = 10; n <= next; ++n) method.learn(ids({1, next}));  // 19 most often
    }
  }
  const DraftTree tree = draft(*method.begin(ids({1, 30, 1, 30, 1, 31, 1, 32, 1})));
  const auto drafted = paths(tree);
  ASSERT_EQ(drafted.size(), 4u);
  EXPECT_TRUE(drafted.contains(ids({19})));
  EXPECT_TRUE(drafted.contains(ids({18})));
  EXPECT_TRUE(drafted.contains(ids({30})));
}

// The same by definition: count branches, list all nodes below the query, sort.
std::multiset<std::pair<float, float>> naive_frequencies(const std::vector<Tokens>& prompt_branches,
                                                         const std::vector<Tokens>& answer_branches,
                                                         const Tokens& query, int depth, int size) {
  std::map<Tokens, std::pair<float, float>> nodes;
  const auto count = [&](const std::vector<Tokens>& branches, auto member) {
    for (const Tokens& branch : branches) {
      if (branch.size() <= query.size() || !std::equal(query.begin(), query.end(), branch.begin()))
        continue;
      for (size_t n = query.size() + 1;
           n <= std::min(branch.size(), query.size() + static_cast<size_t>(depth)); ++n) {
        nodes[{branch.begin(), branch.begin() + static_cast<ptrdiff_t>(n)}].*member += 1.0f;
      }
    }
  };
  using Pair = std::pair<float, float>;
  count(prompt_branches, &Pair::first);
  count(answer_branches, &Pair::second);
  std::vector<std::pair<Tokens, Pair>> sorted(nodes.begin(), nodes.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return 0.9999 * a.second.first + 0.0001 * a.second.second >
           0.9999 * b.second.first + 0.0001 * b.second.second;
  });
  std::multiset<Pair> result;
  for (size_t i = 0; i < std::min(sorted.size(), static_cast<size_t>(size)); ++i)
    result.insert(sorted[i].second);
  return result;
}

// Without answers, a draft is the most frequent nodes of the prompt.
TEST(Pia, DraftsTheMostFrequentNodes) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    PiaOptions options;
    options.branch = random_int(random, 1, 5);
    options.tokens = random_int(random, 1, 30);
    options.query = 1;
    PiaDrafter method(options);
    const Tokens prompt = random_tokens(random, random_int(random, 2, 80), 4);
    std::vector<Tokens> branches;
    for (size_t i = 0; i + 1 < prompt.size(); ++i) {
      const size_t n = std::min(prompt.size() - i, static_cast<size_t>(options.branch) + 2);
      branches.emplace_back(prompt.begin() + static_cast<ptrdiff_t>(i),
                            prompt.begin() + static_cast<ptrdiff_t>(i + n));
    }
    const auto drafter = method.begin(prompt);
    const DraftTree tree = draft(*drafter);
    const Tokens query = {prompt.back()};
    std::multiset<std::pair<float, float>> found;
    for (const auto& [path, score] : paths(tree)) {
      Tokens node = query;
      node.insert(node.end(), path.begin(), path.end());
      float in_prompt = 0.0f;
      for (const Tokens& branch : branches) {
        in_prompt +=
            branch.size() >= node.size() && std::equal(node.begin(), node.end(), branch.begin());
      }
      found.insert({in_prompt, 0.0f});
    }
    EXPECT_EQ(found, naive_frequencies(branches, {}, query, options.branch, options.tokens));
  }
}

TEST(Pia, ThinsOutTreesOnceManyHaveGrown) {
  PiaOptions options = small();
  options.max_tree_nodes = 4;
  PiaDrafter method(options);
  for (int first = 0; first < 1023; ++first) method.learn(ids({first, 1, 2}));
  for (int i = 0; i < 3; ++i) method.learn(ids({2000, 5, 6, 7, 8}));
  method.learn(ids({2000, 5, 9}));
  method.thin_out();
  // Only the tree that is too large lost what was seen once; the rest of it was halved.
  EXPECT_NE(method.answers().find(ids({7, 1, 2})), FrequencyTrie::kNone);
  EXPECT_EQ(method.answers().find(ids({2000, 5, 9})), FrequencyTrie::kNone);
  EXPECT_EQ(method.answers().frequency(method.answers().find(ids({2000, 5}))), 2.0f);
  EXPECT_EQ(method.answers().frequency(method.answers().find(ids({2000, 5, 6, 7, 8}))), 1.5f);
}

TEST(Pia, LimitsAllTreesTogether) {
  PiaOptions options = small();
  options.max_nodes = 100;
  PiaDrafter method(options);
  for (int first = 0; first < 90; ++first) method.learn(ids({first, 1, 2}));
  for (int i = 0; i < 9; ++i) method.learn(ids({500, 1, 2}));
  method.thin_out();
  EXPECT_EQ(method.answers().n_nodes(), 2);
}

}  // namespace
}  // namespace forerun
