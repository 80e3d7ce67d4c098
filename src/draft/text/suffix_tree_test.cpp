#include "draft/text/suffix_tree.h"

#include <deque>
#include <map>

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

// Texts as they are; everything is counted by reading them.
struct NaiveTexts {
  std::deque<Tokens> closed;
  Tokens open;

  struct Next {
    int64_t count = 0;
    int64_t latest = 0;
  };
  // What follows `string`. Strings and what follows them have at most `depth` tokens.
  std::map<TokenId, Next> continuations(std::span<const TokenId> string) const {
    std::map<TokenId, Next> found;
    int64_t place = 0;
    const auto read = [&](const Tokens& text) {
      for (size_t i = 0; i + string.size() < text.size(); ++i) {
        if (!std::equal(string.begin(), string.end(), text.begin() + static_cast<ptrdiff_t>(i)))
          continue;
        Next& next = found[text[i + string.size()]];
        ++next.count;
        next.latest = place + static_cast<int64_t>(i);
      }
      place += static_cast<int64_t>(text.size());
    };
    for (const Tokens& text : closed) read(text);
    read(open);
    return found;
  }
};

void expect_same(const SuffixTree& tree, const NaiveTexts& texts, std::span<const TokenId> string,
                 double min_share) {
  const auto expected = texts.continuations(string);
  int64_t total = 0;
  for (const auto& [token, next] : expected) total += next.count;
  SuffixTree::Occurrences found;
  tree.find(string, found);
  ASSERT_EQ(found.empty(), expected.empty());
  if (found.empty()) return;
  std::vector<SuffixTree::Continuation> next;
  ASSERT_EQ(tree.continuations(found, min_share, next), total);
  size_t n_expected = 0;
  for (const auto& [token, e] : expected) {
    n_expected += static_cast<double>(e.count) >= min_share * static_cast<double>(total);
  }
  ASSERT_EQ(next.size(), n_expected);
  for (size_t i = 0; i < next.size(); ++i) {
    ASSERT_EQ(next[i].count, expected.at(next[i].token).count);
    if (i == 0) continue;
    ASSERT_GE(next[i - 1].count, next[i].count);
    if (next[i - 1].count == next[i].count) {
      ASSERT_GT(expected.at(next[i - 1].token).latest, expected.at(next[i].token).latest);
    }
  }
  // Going on from a string is the same as looking for the longer one.
  if (static_cast<int>(string.size()) + 1 >= tree.depth()) return;
  Tokens longer(string.begin(), string.end());
  longer.push_back(next.empty() ? TokenId{0} : next.back().token);
  SuffixTree::Occurrences extended;
  SuffixTree::Occurrences looked_up;
  tree.extend(found, longer.back(), extended);
  tree.find(longer, looked_up);
  ASSERT_EQ(extended.node, looked_up.node);
  if (extended.node != ChildMap::kNone) {
    ASSERT_EQ(extended.used, looked_up.used);
  }
  ASSERT_EQ(extended.recent, looked_up.recent);
}

class SuffixTreeOracle : public testing::TestWithParam<int> {};

TEST_P(SuffixTreeOracle, CountsEveryString) {
  const int depth = GetParam();
  std::mt19937 random(static_cast<unsigned>(depth));
  for (const int n_letters : {1, 2, 4, 30}) {
    SuffixTree tree(depth);
    NaiveTexts texts;
    for (int step = 0; step < 400; ++step) {
      const int choice = random_int(random, 0, 39);
      if (choice == 0) {
        tree.end_text();
        if (!texts.open.empty()) texts.closed.push_back(std::exchange(texts.open, {}));
      } else if (choice == 1 && !texts.closed.empty()) {
        tree.drop_oldest_text();
        texts.closed.pop_front();
      } else {
        for (const TokenId token : random_tokens(random, random_int(random, 1, 5), n_letters)) {
          tree.append(token);
          texts.open.push_back(token);
        }
      }
      // Queries from the end of the text, from anywhere, and made up.
      const Tokens& from = texts.closed.empty() || random() % 2 == 0 ? texts.open : texts.closed.back();
      const auto length = static_cast<size_t>(random_int(random, 0, depth - 1));
      Tokens query = random_tokens(random, static_cast<int>(length), n_letters);
      if (from.size() >= length && random() % 4 != 0) {
        const size_t begin =
            random() % 2 == 0 ? from.size() - length : random() % (from.size() - length + 1);
        query.assign(from.begin() + static_cast<ptrdiff_t>(begin),
                     from.begin() + static_cast<ptrdiff_t>(begin + length));
      }
      expect_same(tree, texts, query, random() % 2 == 0 ? 0.0 : 0.3);
      if (HasFatalFailure()) return;
      ASSERT_LE(tree.n_nodes(), 2 * tree.n_tokens() + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Depths, SuffixTreeOracle, testing::Values(1, 2, 3, 8, 64));

TEST(SuffixTree, KeepsNothingOfWhatIsDropped) {
  std::mt19937 random(9);
  SuffixTree tree(16);
  for (int text = 0; text < 50; ++text) {
    for (const TokenId token : random_tokens(random, random_int(random, 1, 60), 3)) tree.append(token);
    tree.end_text();
    if (tree.n_texts() > 5) tree.drop_oldest_text();
  }
  while (tree.n_texts() > 0) tree.drop_oldest_text();
  EXPECT_EQ(tree.n_nodes(), 1);
  EXPECT_EQ(tree.n_tokens(), 0);
}

}  // namespace
}  // namespace forerun
