#include "draft/text/suffix.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "tree/best_first.h"

namespace forerun {
namespace {

// A tree of tokens that followed the end of the text in another tree.
struct Proposal {
  struct Token {
    TokenId token;
    int32_t parent;
    double probability;
    int64_t n_seen;
  };
  std::vector<Token> tokens;
  double score = 0.0;  // the sum of their probabilities
  int match_length = 0;
  int64_t n_matches = 0;  // places that the probabilities are from
  const SuffixTree* seen_in = nullptr;
};

class SuffixRequestDrafter : public RequestDrafter {
 public:
  SuffixRequestDrafter(SuffixDrafter& method, std::span<const TokenId> prompt)
      : method_(method), own_(method.options().depth), n_prompt_(prompt.size()) {
    append(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    Proposal best;
    improve(own_, limits, best);
    improve(method_.answers(), limits, best);
    // Probabilities are of what was seen; what never was counts as once more.
    const double seen =
        static_cast<double>(best.n_matches) / (static_cast<double>(best.n_matches) + 1.0);
    for (const auto& token : best.tokens) {
      tree.add({.token = token.token,
                .parent = token.parent,
                .score = static_cast<float>(seen * token.probability),
                .source = best.seen_in == &own_ ? DraftSource::kInput : DraftSource::kDatastore,
                .match_length = best.match_length,
                .n_seen = static_cast<int32_t>(token.n_seen)});
    }
  }

  void append(std::span<const TokenId> tokens) override {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    for (const TokenId token : tokens) own_.append(token);
  }

  void finish() override { method_.learn(std::span(text_).subspan(n_prompt_)); }

 private:
  // A length of match to try.
  struct Match {
    int length;
    int budget;  // tokens to draft
    int bound;   // of the sum of their probabilities
  };

  const SuffixOptions& options() const { return method_.options(); }
  std::span<const TokenId> query(int length) const {
    return std::span(text_).last(static_cast<size_t>(length));
  }

  // Makes `best` the best proposal of what was seen here, if it has a greater sum.
  void improve(const SuffixTree& seen, const DraftLimits& limits, Proposal& best) {
    matches_.clear();
    for (int n = longest_match(seen); n >= 1; --n) {
      const int budget = std::min({limits.max_nodes, options().tokens,
                                   static_cast<int>(options().factor * n + options().offset + 1e-6)});
      if (budget < 1) continue;
      // A token's probability is at most 1, and so is the sum over tokens of equal depth.
      const int bound = std::min({budget, options().depth - n, limits.max_depth});
      matches_.push_back({.length = n, .budget = budget, .bound = bound});
    }
    // Those first that promise most.
    std::ranges::stable_sort(matches_, std::greater{}, &Match::bound);
    for (const Match& match : matches_) {
      // Of equals of one tree that of the longer match.
      const bool tie_wins = best.seen_in == &seen && match.length > best.match_length;
      const auto is_less = [&](double score) {
        return score < best.score || (score == best.score && !tie_wins);
      };
      if (is_less(match.bound)) continue;
      growing_.seen_in = &seen;
      growing_.match_length = match.length;
      grow(match.budget, limits.max_depth, best.score);
      if (!is_less(growing_.score)) std::swap(best, growing_);
    }
  }

  // A string that matches has matching ends, so doubling and halving find the longest.
  int longest_match(const SuffixTree& seen) {
    const auto matches = [&](int n) {
      seen.find(query(n), string(kRoot));
      return !string(kRoot).empty();
    };
    const int most = std::min(options().depth - 1, static_cast<int>(text_.size()));
    int longest = 0;
    int too_long = 1;
    while (too_long <= most && matches(too_long)) longest = std::exchange(too_long, 2 * too_long);
    too_long = std::min(too_long, most + 1);
    while (too_long - longest > 1) {
      const int middle = (longest + too_long) / 2;
      (matches(middle) ? longest : too_long) = middle;
    }
    return longest;
  }

  // Grows a proposal from its match. Gives up when its sum cannot reach `score`.
  void grow(int budget, int max_depth, double score) {
    const SuffixTree& seen = *growing_.seen_in;
    growing_.tokens.clear();
    growing_.score = 0.0;
    queue_.clear();
    seen.find(query(growing_.match_length), string(kRoot));
    growing_.n_matches = find_candidates(kRoot, 1.0, 0);
    for (int left = budget; left > 0 && !queue_.empty(); --left) {
      const auto [probability, depth, order, token] = queue_.pop();
      if (growing_.score + probability * left < score) return;
      growing_.score += probability;
      const auto node = static_cast<int32_t>(growing_.tokens.size());
      growing_.tokens.push_back(token);
      if (depth == max_depth) continue;
      string(node);  // there is one, so that those before it stay where they are
      seen.extend(string(token.parent), token.token, string(node));
      find_candidates(node, probability, depth);
    }
  }

  // What follows the node, whose probability and depth are these. Returns how often anything does.
  int64_t find_candidates(int32_t node, double probability, int depth) {
    if (string(node).empty()) return 0;
    const int64_t total =
        growing_.seen_in->continuations(string(node), options().min_probability / probability, found_);
    if (options().shape == "path" && !found_.empty()) found_.erase(found_.begin() + 1, found_.end());
    for (const auto& next : found_) {
      const double share = static_cast<double>(next.count) / static_cast<double>(total);
      queue_.push(probability * share, depth + 1, {next.token, node, probability * share, next.count});
    }
    return total;
  }

  // Where the string that ends with a node of the proposal was seen.
  SuffixTree::Occurrences& string(int32_t node) {
    const auto index = static_cast<size_t>(node - kRoot);
    if (index >= strings_.size()) strings_.resize(index + 1);
    return strings_[index];
  }

  SuffixDrafter& method_;
  SuffixTree own_;
  std::vector<TokenId> text_;
  size_t n_prompt_;
  // Reused from draft to draft.
  Proposal growing_;
  std::vector<Match> matches_;
  BestFirst<double, Proposal::Token> queue_;
  std::vector<SuffixTree::Occurrences> strings_;
  std::vector<SuffixTree::Continuation> found_;
};

}  // namespace

std::unique_ptr<RequestDrafter> SuffixDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<SuffixRequestDrafter>(*this, prompt);
}

void SuffixDrafter::learn(std::span<const TokenId> answer) {
  for (const TokenId token : answer) answers_.append(token);
  answers_.end_text();
  while (answers_.n_texts() > options_.max_answers || answers_.n_tokens() > options_.max_answer_tokens) {
    answers_.drop_oldest_text();
  }
}

}  // namespace forerun
