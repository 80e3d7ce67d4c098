#include "retrieval/input_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/test_tokens.h"

namespace forerun {
namespace {

// All windows, written down one by one.
class Oracle {
 public:
  explicit Oracle(const InputTrieOptions& options) : options_(options) {}

  void put(const Tokens& prompt) {
    texts_.push_back(prompt);
    prompt_sizes_.push_back(prompt.size());
  }
  void append(const Tokens& tokens) {
    if (texts_.empty()) put({});
    texts_.back().insert(texts_.back().end(), tokens.begin(), tokens.end());
  }

  std::map<Tokens, int> counts() const {
    std::map<Tokens, int> counts;
    for (size_t i = 0; i < texts_.size(); ++i) {
      for (size_t start = 0; start < texts_[i].size(); ++start) {
        const size_t end = end_of(i, start);
        for (size_t stop = start; stop <= end; ++stop) {
          if (end > start) ++counts[Tokens(texts_[i].begin() + start, texts_[i].begin() + stop)];
        }
      }
    }
    return counts;
  }

 private:
  // Where the window of a place ends; `start` if there is none.
  size_t end_of(size_t i, size_t start) const {
    const size_t size = texts_[i].size();
    const size_t whole = start + static_cast<size_t>(options_.window);
    if (options_.rule == WindowRule::kGrowing) return std::min(whole, size);
    const size_t prompt = prompt_sizes_[i];
    if (whole <= prompt) return whole;
    if (start + static_cast<size_t>(options_.prompt_tail) < prompt) return prompt;
    return whole <= size ? whole : start;
  }

  InputTrieOptions options_;
  std::vector<Tokens> texts_;
  std::vector<size_t> prompt_sizes_;
};

// Compares what is below a handle with the counts of the windows that begin with `prefix`.
void expect_equal_below(const InputTrie& trie, uint64_t handle, const Tokens& prefix,
                        const std::map<Tokens, int>& counts, bool growing) {
  std::vector<Candidate> children;
  trie.children(handle, children);
  std::map<TokenId, int> expected;
  int total = 0;
  for (auto it = counts.upper_bound(prefix); it != counts.end(); ++it) {
    const Tokens& tokens = it->first;
    if (tokens.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), tokens.begin()))
      break;
    if (tokens.size() != prefix.size() + 1) continue;
    expected[tokens.back()] = it->second;
    total += it->second;
  }
  if (!growing) total = counts.at(prefix);
  ASSERT_EQ(children.size(), expected.size());
  for (const Candidate& child : children) {
    ASSERT_TRUE(expected.contains(child.token));
    EXPECT_FLOAT_EQ(child.share, static_cast<float>(expected[child.token]) / static_cast<float>(total));
    expected.erase(child.token);
    Tokens longer = prefix;
    longer.push_back(child.token);
    expect_equal_below(trie, child.handle, longer, counts, growing);
  }
}

void expect_equal(const InputTrie& trie, const std::map<Tokens, int>& counts, const Tokens& query,
                  const InputTrieOptions& options) {
  std::vector<InputTrie::Match> matches;
  trie.find(query, matches);
  std::vector<int> expected_lengths;
  for (int length = std::min(options.max_match, static_cast<int>(query.size())); length > 0; --length) {
    if (counts.contains(Tokens(query.end() - length, query.end()))) expected_lengths.push_back(length);
  }
  ASSERT_EQ(matches.size(), expected_lengths.size());
  for (size_t i = 0; i < matches.size(); ++i) {
    EXPECT_EQ(matches[i].length, expected_lengths[i]);
    expect_equal_below(trie, matches[i].handle, Tokens(query.end() - matches[i].length, query.end()),
                       counts, options.rule == WindowRule::kGrowing);
  }
}

TEST(InputTrie, EqualsBruteForce) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 400; ++round) {
    InputTrieOptions options;
    options.rule = round % 2 == 0 ? WindowRule::kGrowing : WindowRule::kComplete;
    options.window = pick(1, 6);
    options.max_match = pick(1, 5);
    options.prompt_tail = pick(0, 4);
    InputTrie trie(options);
    Oracle oracle(options);
    const int n_letters = pick(1, 4);
    Tokens all;
    const auto random_tokens = [&](int n) {
      Tokens tokens;
      for (int i = 0; i < n; ++i) tokens.push_back(TokenId{pick(0, n_letters - 1)});
      all.insert(all.end(), tokens.begin(), tokens.end());
      return tokens;
    };
    for (int step = 0; step < 12; ++step) {
      if ((step == 0 && round % 5 != 0) || pick(0, 5) == 0) {
        const Tokens prompt = random_tokens(pick(0, 15));
        trie.put(prompt);
        oracle.put(prompt);
      } else {
        const Tokens tokens = random_tokens(pick(0, 4));
        trie.append(tokens);
        oracle.append(tokens);
      }
      const auto counts = oracle.counts();
      expect_equal(trie, counts, all, options);
      Tokens query;
      for (int i = pick(0, 6); i > 0; --i) query.push_back(TokenId{pick(0, n_letters)});
      expect_equal(trie, counts, query, options);
      if (HasFatalFailure()) FAIL() << "round " << round << " step " << step;
    }
  }
}

// What may follow `query` according to its longest match, over all depths.
std::set<Tokens> paths_after(const InputTrie& trie, const Tokens& query, int length) {
  std::set<Tokens> paths;
  std::vector<InputTrie::Match> matches;
  trie.find(query, matches);
  for (const InputTrie::Match& match : matches) {
    if (match.length != length) continue;
    std::vector<std::pair<uint64_t, Tokens>> todo{{match.handle, {}}};
    while (!todo.empty()) {
      const auto [handle, path] = todo.back();
      todo.pop_back();
      std::vector<Candidate> children;
      trie.children(handle, children);
      if (children.empty() && !path.empty()) paths.insert(path);
      for (const Candidate& child : children) {
        Tokens longer = path;
        longer.push_back(child.token);
        todo.push_back({child.handle, longer});
      }
    }
  }
  return paths;
}

TEST(InputTrie, CompleteWindowsOfAnAnswerAreInvisibleUntilTheyAreWhole) {
  InputTrieOptions options;
  options.rule = WindowRule::kComplete;
  options.window = 5;
  InputTrie trie(options);
  trie.append(ids({1, 2, 3, 4}));
  EXPECT_TRUE(paths_after(trie, ids({1, 2}), 2).empty());
  trie.append(ids({5}));
  EXPECT_EQ(paths_after(trie, ids({1, 2}), 2), std::set<Tokens>{ids({3, 4, 5})});
  // A match of one token reaches one deeper than a match of two.
  EXPECT_EQ(paths_after(trie, ids({9, 1}), 1), std::set<Tokens>{ids({2, 3, 4, 5})});
  EXPECT_TRUE(paths_after(trie, ids({2}), 1).empty());
}

TEST(InputTrie, CompleteWindowsStraddlePromptAndAnswerByTheTail) {
  InputTrieOptions options;
  options.rule = WindowRule::kComplete;
  options.window = 4;
  options.prompt_tail = 2;
  InputTrie trie(options);
  trie.put(ids({1, 2, 3, 4, 5}));
  EXPECT_EQ(paths_after(trie, ids({3}), 1),
            std::set<Tokens>{ids({4, 5})});             // cut short by the prompt's end
  EXPECT_TRUE(paths_after(trie, ids({4}), 1).empty());  // waits for the answer
  trie.append(ids({6, 7}));
  EXPECT_EQ(paths_after(trie, ids({4}), 1), std::set<Tokens>{ids({5, 6, 7})});
  EXPECT_EQ(paths_after(trie, ids({3}), 1), std::set<Tokens>{ids({4, 5})});
  // A prompt no longer than its tail belongs to the answer altogether.
  InputTrie brief(options);
  brief.put(ids({1, 2}));
  EXPECT_TRUE(paths_after(brief, ids({1}), 1).empty());
  brief.append(ids({3, 4}));
  EXPECT_EQ(paths_after(brief, ids({1}), 1), std::set<Tokens>{ids({2, 3, 4})});
}

TEST(InputTrie, GrowingWindowsAreVisibleAtOnce) {
  InputTrie trie({});
  trie.put(ids({1, 2, 3}));
  trie.append(ids({1}));
  EXPECT_EQ(paths_after(trie, ids({3, 1}), 1), std::set<Tokens>{ids({2, 3, 1})});
  trie.append(ids({2}));
  EXPECT_EQ(paths_after(trie, ids({1, 2}), 2), std::set<Tokens>{ids({3, 1, 2})});
}

TEST(InputTrie, RepeatedPutAccumulates) {
  for (const WindowRule rule : {WindowRule::kGrowing, WindowRule::kComplete}) {
    InputTrieOptions options;
    options.rule = rule;
    InputTrie trie(options);
    trie.put(ids({1, 2, 3, 4, 5, 6, 7, 8, 9}));
    trie.put(ids({1, 2, 4, 4, 5, 6, 7, 8, 9}));
    const auto paths = paths_after(trie, ids({1, 2}), 2);
    EXPECT_EQ(paths, (std::set<Tokens>{ids({3, 4, 5, 6, 7, 8}), ids({4, 4, 5, 6, 7, 8})}));
  }
}

TEST(InputTrie, UnknownTokensAndOddQueries) {
  InputTrie trie({});
  std::vector<InputTrie::Match> matches;
  trie.find({}, matches);
  trie.find(ids({1, 2, 3}), matches);
  EXPECT_TRUE(matches.empty());
  trie.put({});
  trie.append({});
  trie.put(ids({1, 2, 3}));
  trie.find(ids({7}), matches);
  trie.find(ids({-1}), matches);
  trie.find(ids({INT32_MAX}), matches);
  EXPECT_TRUE(matches.empty());
}

TEST(InputTrie, StaysSmall) {
  std::mt19937 random(2);
  std::geometric_distribution<int> token(0.01);
  Tokens prompt;
  for (int i = 0; i < 32768; ++i) prompt.push_back(TokenId{token(random)});
  InputTrie trie({});
  trie.put(prompt);
  // A node per token of each window would need more than 20 bytes times 8.
  EXPECT_LT(trie.n_bytes(), prompt.size() * 160);
}

}  // namespace
}  // namespace forerun
