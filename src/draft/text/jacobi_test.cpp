#include "draft/text/jacobi.h"

#include <functional>
#include <set>

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

constexpr DraftLimits kAmple = {.max_nodes = 1000, .max_depth = 100};

// A "model": the next token as a function of all tokens before it.
using Model = std::function<TokenId(const Tokens&)>;

TokenId mixed(const Tokens& text) {
  const int a = to_int(text.back());
  const int b = text.size() > 1 ? to_int(text[text.size() - 2]) : 0;
  return TokenId{(7 * a + 3 * b + 5) % 11};
}

class ModelTokens : public TargetTokens {
 public:
  ModelTokens(const Model& model, const Tokens& text, const DraftTree& tree)
      : model_(model), text_(text), tree_(tree) {}
  TokenId after(int32_t node) const override {
    Tokens text = text_;
    const Tokens path = path_to(tree_, node);
    text.insert(text.end(), path.begin(), path.end());
    return model_(text);
  }

 private:
  const Model& model_;
  const Tokens& text_;
  const DraftTree& tree_;
};

// What the text takes of a tree, and one token more.
Tokens accepted(const DraftTree& tree, const TargetTokens& target) {
  Tokens result;
  int32_t node = kRoot;
  while (true) {
    result.push_back(target.after(node));
    const auto child = tree.find_child(node, result.back());
    if (!child) return result;
    node = *child;
  }
}

TEST(NgramPool, KeepsTheLatest) {
  NgramPool pool(2, 2);
  EXPECT_TRUE(pool.behind(TokenId{1}).empty());
  pool.add(TokenId{1}, ids({2, 3}));
  pool.add(TokenId{1}, ids({4, 5}));
  pool.add(TokenId{1}, ids({2, 3}));  // again
  pool.add(TokenId{1}, ids({6, 7}));  // 4 5 is the oldest
  const auto kept = pool.behind(TokenId{1});
  EXPECT_EQ(Tokens(kept.begin(), kept.end()), ids({2, 3, 6, 7}));
  EXPECT_TRUE(pool.behind(TokenId{2}).empty());
}

// The published algorithm as it is written: levels as rows, which see the levels 0 up to
// their column and the lower levels of their column.
class Published {
 public:
  Published(int level, int window, Tokens first_guesses)
      : level_(static_cast<size_t>(level)),
        window_(static_cast<size_t>(window)),
        levels_{std::move(first_guesses)} {}

  // One step after `text`; returns the n-grams, first token in front.
  std::vector<Tokens> step(const Tokens& text, const Model& model) {
    const size_t top = levels_.size() - 1;
    // Level 0 has no column 0, the others do.
    Tokens results;
    const size_t n_columns = levels_[0].size() + 1;
    for (size_t column = top == 0 ? 1 : 0; column < n_columns; ++column) {
      Tokens seen = text;
      seen.insert(seen.end(), levels_[0].begin(), levels_[0].begin() + static_cast<ptrdiff_t>(column));
      for (size_t l = 1; l <= top; ++l) seen.push_back(levels_[l][column]);
      results.push_back(model(seen));
    }
    if (levels_.size() < level_ - 1) {
      for (Tokens& l : levels_) l.erase(l.begin());
      if (top > 0) results.erase(results.begin());
      levels_.push_back(results);
      return {};
    }
    std::vector<Tokens> ngrams;
    EXPECT_EQ(results.size(), window_);
    for (size_t column = 0; column < window_; ++column) {
      Tokens ngram = {column == 0 ? text.back() : levels_[0][column - 1]};
      for (size_t l = 1; l <= top; ++l) ngram.push_back(levels_[l][column]);
      ngram.push_back(results[column]);
      ngrams.push_back(ngram);
    }
    levels_.push_back(results);
    levels_.erase(levels_.begin());
    levels_[0].erase(levels_[0].begin());
    return ngrams;
  }

 private:
  size_t level_;
  size_t window_;
  std::vector<Tokens> levels_;
};

class JacobiWindows : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(JacobiWindows, HarvestsTheNgramsOfThePublishedAlgorithm) {
  const auto [level, window_size] = GetParam();
  const Model model = mixed;
  Tokens text = ids({3, 1, 4, 1, 5, 9, 2, 6});
  JacobiWindow window(level, window_size, 42, text);
  NgramPool pool(level - 1, 3);
  NgramPool expected(level - 1, 3);
  std::optional<Published> published;
  for (int step = 0; step < 25; ++step) {
    DraftTree tree;
    window.draft(kAmple, tree);
    EXPECT_LE(tree.size(), window.n_rows());
    if (!published) {
      ASSERT_EQ(tree.size(), window_size + level - 3);
      published.emplace(level, window_size, chain(tree));
    }
    const ModelTokens target(model, text, tree);
    window.observe(tree, target, text.back(), pool);
    for (const Tokens& ngram : published->step(text, model))
      expected.add(ngram.front(), std::span(ngram).subspan(1));
    for (int first = 0; first < 11; ++first) {
      const auto a = pool.behind(TokenId{first});
      const auto b = expected.behind(TokenId{first});
      ASSERT_EQ(Tokens(a.begin(), a.end()), Tokens(b.begin(), b.end()));
    }
    text.push_back(model(text));
  }
  EXPECT_FALSE(pool.behind(text[text.size() - 2]).empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, JacobiWindows,
                         testing::Values(std::pair{3, 1}, std::pair{3, 4}, std::pair{5, 7},
                                         std::pair{7, 3}));

// Where each token depends on the one before it alone, a column is right from its first
// token on, whatever stands before it.
TEST(Jacobi, FindsTheNgramsOfASimpleModel) {
  const Model model = [](const Tokens& text) { return TokenId{(to_int(text.back()) + 1) % 13}; };
  Tokens text = ids({7, 0, 4, 11});
  JacobiOptions options;
  options.text_ngrams = false;
  JacobiDrafter method(options);
  const auto drafter = method.begin(text);
  int n_steps = 0;
  int n_tokens = 0;
  for (; n_tokens < 200; ++n_steps) {
    const DraftTree tree = draft(*drafter, kAmple);
    const ModelTokens target(model, text, tree);
    const Tokens next = accepted(tree, target);
    drafter->observe(tree, target);
    drafter->append(next);
    text.insert(text.end(), next.begin(), next.end());
    n_tokens += static_cast<int>(next.size());
  }
  // After one period every n-gram is in the pool, and a step gives N tokens.
  EXPECT_LT(n_steps, 200 / 3);
}

TEST(Jacobi, DraftsNgramsOfTheTextWhereAsked) {
  JacobiOptions options;
  options.level = 3;
  const Tokens text = ids({1, 2, 3, 9, 1, 4, 5, 9, 1});
  const auto with = paths(draft(*JacobiDrafter(options).begin(text), kAmple));
  EXPECT_TRUE(with.contains(ids({2, 3})));
  EXPECT_TRUE(with.contains(ids({4, 5})));
  options.text_ngrams = false;
  const DraftTree without = draft(*JacobiDrafter(options).begin(text), kAmple);
  EXPECT_EQ(without.size(), options.window + options.level - 3);
}

// Whatever is cut from a tree before its pass, what is harvested is right.
TEST(Jacobi, LivesWithPrunedTrees) {
  const Model model = [](const Tokens& text) { return TokenId{(5 * to_int(text.back()) + 3) % 13}; };
  std::mt19937 random(6);
  for (int round = 0; round < 20; ++round) {
    Tokens text = random_tokens(random, 20, 13);
    JacobiWindow window(4, 5, static_cast<uint64_t>(round), text);
    NgramPool pool(3, 4);
    int n_harvested = 0;
    for (int step = 0; step < 40; ++step) {
      DraftTree tree;
      window.draft({.max_nodes = random_int(random, 0, 30), .max_depth = random_int(random, 1, 9)},
                   tree);
      if (step % 2 == 0) {
        std::vector<bool> keep(static_cast<size_t>(tree.size()));
        for (int32_t node = 0; node < tree.size(); ++node) {
          const bool has_parent =
              tree[node].parent == kRoot || keep[static_cast<size_t>(tree[node].parent)];
          keep[static_cast<size_t>(node)] = has_parent && random() % 8 != 0;
        }
        tree.prune(keep);
      }
      NgramPool harvest(3, 100);
      window.observe(tree, ModelTokens(model, text, tree), text.back(), harvest);
      for (int first = 0; first < 13; ++first) {
        const auto behind = harvest.behind(TokenId{first});
        for (size_t i = 0; i + 3 <= behind.size(); i += 3) {
          ++n_harvested;
          // The last token is the model's, behind the two before it.
          EXPECT_EQ(behind[i + 2], model({behind[i + 1]}));
        }
      }
      text.push_back(model(text));
    }
    EXPECT_GT(n_harvested, 0);
  }
}

}  // namespace
}  // namespace forerun
