#include "draft/text/suffix.h"

#include <map>
#include <optional>

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

TEST(Suffix, DraftsAsManyTokensAsItMatched) {
  SuffixDrafter method{SuffixOptions{}};
  const auto drafter = method.begin(ids({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}));
  const DraftTree tree = draft(*drafter);
  EXPECT_EQ(chain(tree), ids({4, 5, 6}));
  EXPECT_EQ(tree[0].match_length, 3);
  EXPECT_EQ(tree[2].score, 0.5f);  // seen once
}

TEST(Suffix, SharesProbabilityAmongWhatFollowed) {
  // After 1: twice 2 (once 2 3, once 2 4), once 5; and what was never seen.
  SuffixOptions options;
  options.offset = 3.0;
  SuffixDrafter method(options);
  const auto drafter = method.begin(ids({1, 2, 3, 1, 2, 4, 1, 5, 9, 1}));
  const auto drafted = paths(draft(*drafter));
  ASSERT_EQ(drafted.size(), 4u);
  EXPECT_FLOAT_EQ(drafted.at(ids({2})), 2.0f / 4);
  // Of the quarter that each of the others has, the deepest and latest are taken.
  EXPECT_FLOAT_EQ(drafted.at(ids({2, 4})), 1.0f / 4);
  EXPECT_FLOAT_EQ(drafted.at(ids({2, 4, 1})), 1.0f / 4);
  EXPECT_FLOAT_EQ(drafted.at(ids({2, 4, 1, 5})), 1.0f / 4);
}

TEST(Suffix, LearnsFromAnswersThatEndedWell) {
  SuffixDrafter method{SuffixOptions{}};
  const auto first = method.begin(ids({50}));
  first->append(ids({1, 2, 3, 4}));
  EXPECT_TRUE(draft(*method.begin(ids({1, 2}))).empty());
  first->finish();
  const DraftTree tree = draft(*method.begin(ids({1, 2})));
  EXPECT_EQ(chain(tree), ids({3, 4}));
  EXPECT_EQ(tree[0].source, DraftSource::kDatastore);
  // The prompt is not part of the answer.
  EXPECT_TRUE(draft(*method.begin(ids({50}))).empty());
  // Of equal sums the request's own text wins.
  EXPECT_EQ(chain(draft(*method.begin(ids({1, 2, 7, 8, 1, 2})))), ids({7, 8}));
}

TEST(Suffix, ForgetsTheOldestAnswers) {
  SuffixOptions options;
  options.max_answers = 2;
  options.max_answer_tokens = 10;
  SuffixDrafter method(options);
  method.learn(ids({1, 2}));
  method.learn(ids({3, 4}));
  method.learn(ids({5, 6}));
  EXPECT_TRUE(draft(*method.begin(ids({1}))).empty());
  EXPECT_EQ(chain(draft(*method.begin(ids({3})))), ids({4}));
  method.learn(ids({7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_TRUE(draft(*method.begin(ids({3}))).empty());
  EXPECT_EQ(method.answers().n_tokens(), 10);
}

// The paper's procedure by definition, counting in the texts themselves: every match length
// from 1 on, best first, the greatest sum wins, ">=" for longer matches.
class NaiveSuffixes {
 public:
  NaiveSuffixes(const SuffixOptions& options, std::vector<Tokens> texts)
      : options_(options), texts_(std::move(texts)) {}

  struct Result {
    std::map<Tokens, double> tokens;
    double score = 0.0;
    int match_length = 0;
    double seen = 0.0;  // share of the probability
  };
  Result best(const Tokens& text, const DraftLimits& limits) const {
    Result best;
    for (int n = 1; n < options_.depth && n <= static_cast<int>(text.size()); ++n) {
      const Tokens match(text.end() - n, text.end());
      if (next_of(match).empty()) break;
      Result result = speculate(match, limits);
      result.match_length = n;
      int total = 0;
      for (const auto& [token, next] : next_of(match)) total += next.count;
      result.seen = total / (total + 1.0);
      if (result.score >= best.score) best = result;
    }
    return best;
  }

 private:
  struct Next {
    int count = 0;
    size_t latest = 0;
  };
  std::map<TokenId, Next> next_of(const Tokens& string) const {
    std::map<TokenId, Next> next;
    size_t place = 0;
    for (const Tokens& text : texts_) {
      for (size_t i = 0; i + string.size() < text.size(); ++i, ++place) {
        if (static_cast<int>(string.size()) >= options_.depth) continue;
        if (!std::equal(string.begin(), string.end(), text.begin() + static_cast<ptrdiff_t>(i)))
          continue;
        ++next[text[i + string.size()]].count;
        next[text[i + string.size()]].latest = place;
      }
      place += text.size();
    }
    return next;
  }

  Result speculate(const Tokens& match, const DraftLimits& limits) const {
    Result result;
    const int budget = std::min({limits.max_nodes, options_.tokens,
                                 static_cast<int>(options_.factor * static_cast<double>(match.size()) +
                                                  options_.offset + 1e-6)});
    std::vector<std::pair<double, Tokens>> frontier = {};
    const auto expand = [&](const Tokens& path, double probability) {
      if (static_cast<int>(path.size()) >= limits.max_depth) return;
      Tokens string = match;
      string.insert(string.end(), path.begin(), path.end());
      const auto next = next_of(string);
      double total = 0;
      for (const auto& [token, n] : next) total += n.count;
      std::optional<std::pair<TokenId, Next>> top;
      for (const auto& [token, n] : next) {
        if (!top || n.count > top->second.count ||
            (n.count == top->second.count && n.latest > top->second.latest)) {
          top = {token, n};
        }
      }
      for (const auto& [token, n] : next) {
        if (options_.shape == "path" && token != top->first) continue;
        Tokens longer = path;
        longer.push_back(token);
        const double p = probability * (n.count / total);
        if (n.count / total >= options_.min_probability / probability) frontier.push_back({p, longer});
      }
    };
    expand({}, 1.0);
    while (static_cast<int>(result.tokens.size()) < budget && !frontier.empty()) {
      const auto top = std::max_element(frontier.begin(), frontier.end(),
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
      const auto [probability, path] = *top;
      frontier.erase(top);
      result.tokens[path] = probability;
      result.score += probability;
      expand(path, probability);
    }
    return result;
  }

  SuffixOptions options_;
  std::vector<Tokens> texts_;
};

std::vector<float> scores(const DraftTree& tree) {
  std::vector<float> result;
  for (const DraftNode& node : tree.nodes()) result.push_back(node.score);
  std::sort(result.begin(), result.end());
  return result;
}

TEST(Suffix, DraftsWhatThePaperSays) {
  std::mt19937 random(7);
  for (int round = 0; round < 120; ++round) {
    SuffixOptions options;
    options.depth = random_int(random, 3, 24);
    options.shape = round % 2 == 0 ? "path" : "tree";
    options.factor = 0.5 * random_int(random, 1, 4);
    options.offset = random_int(random, -1, 3);
    options.tokens = random_int(random, 1, 20);
    options.min_probability = 0.05 * random_int(random, 1, 6);
    SuffixDrafter method(options);
    std::vector<Tokens> answers;
    for (int i = random_int(random, 0, 4); i > 0; --i) {
      answers.push_back(random_tokens(random, random_int(random, 1, 60), 4));
      method.learn(answers.back());
    }
    Tokens text = random_tokens(random, random_int(random, 0, 60), 4);
    const auto drafter = method.begin(text);
    for (int step = 0; step < 6; ++step) {
      const DraftLimits limits = {.max_nodes = random_int(random, 1, 20),
                                  .max_depth = random_int(random, 1, 20)};
      const DraftTree tree = draft(*drafter, limits);
      expect_sound(tree, limits);
      const auto own = NaiveSuffixes(options, {text}).best(text, limits);
      const auto others = NaiveSuffixes(options, answers).best(text, limits);
      // Sums of the same numbers in another order may differ in their last bits.
      if (std::abs(own.score - others.score) > 1e-9 || own.score == others.score) {
        const bool use_own = own.score >= others.score;
        const auto& expected = use_own ? own : others;
        ASSERT_EQ(tree.size(), static_cast<int>(expected.tokens.size()));
        std::vector<float> expected_scores;
        for (const auto& [path, p] : expected.tokens)
          expected_scores.push_back(static_cast<float>(p * expected.seen));
        std::sort(expected_scores.begin(), expected_scores.end());
        const auto found = scores(tree);
        for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected_scores[i], 1e-6);
        if (tree.empty()) continue;
        ASSERT_EQ(tree[0].source, use_own ? DraftSource::kInput : DraftSource::kDatastore);
        if (options.shape == "path") {
          ASSERT_EQ(tree[0].match_length, expected.match_length);
          for (const auto& [path, p] : paths(tree)) ASSERT_TRUE(expected.tokens.contains(path));
        }
      }
      const Tokens more = random_tokens(random, random_int(random, 1, 8), 4);
      drafter->append(more);
      text.insert(text.end(), more.begin(), more.end());
    }
  }
}

}  // namespace
}  // namespace forerun
