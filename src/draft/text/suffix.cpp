#include "draft/text/suffix.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace forerun {
namespace {

constexpr std::array<std::string_view, 2> kShapes = {"tree", "path"};

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
};

// Grows proposals. Keeps its buffers from one to the next.
class Proposer {
 public:
  explicit Proposer(const SuffixOptions& options) : options_(options) {}

  // Makes `best` the best proposal for the end of `text`, if it has a greater sum.
  // Returns whether it has.
  bool improve(const SuffixTree& tree, std::span<const TokenId> text, const DraftLimits& limits,
               Proposal& best) {
    found_best_.score = 0.0;
    found_best_.match_length = 0;
    list_matches(longest_match(tree, text), tree.depth(), limits);
    for (const Match& match : matches_) {
      const double score = std::max(best.score, found_best_.score);
      const bool tie_wins = score > best.score && match.length > found_best_.match_length;
      if (match.bound < score || (match.bound == score && !tie_wins)) continue;
      tree.find(text.last(static_cast<size_t>(match.length)), string(0));
      grow(tree, match.budget, limits.max_depth, score);
      if (proposal_.score > score || (proposal_.score == score && tie_wins)) {
        std::swap(found_best_, proposal_);
        found_best_.match_length = match.length;
      }
    }
    if (found_best_.score <= best.score) return false;
    std::swap(best, found_best_);
    return true;
  }

 private:
  // A token that may come next, behind the string `parent_string`.
  struct Candidate {
    double probability;
    int depth = 0;
    int order = 0;  // of discovery
    int64_t n_seen = 0;
    TokenId token = {};
    int32_t parent = kRoot;
    size_t parent_string = 0;

    bool operator<(const Candidate& other) const {
      if (probability != other.probability) return probability < other.probability;
      if (depth != other.depth) return depth < other.depth;
      return order > other.order;
    }
  };

  // A length of match to try.
  struct Match {
    int length;
    int budget;    // tokens to draft
    double bound;  // of the sum of their probabilities
  };

  // Fills matches_, those that promise most first.
  void list_matches(int longest, int depth, const DraftLimits& limits) {
    matches_.clear();
    for (int n = longest; n >= 1; --n) {
      const int budget = std::min({limits.max_nodes, options_.tokens,
                                   static_cast<int>(options_.factor * n + options_.offset + 1e-6)});
      if (budget < 1) continue;
      // A token's probability is at most 1, and so is the sum over tokens of equal depth.
      const int bound = std::min({budget, depth - n, limits.max_depth});
      matches_.push_back({.length = n, .budget = budget, .bound = static_cast<double>(bound)});
    }
    std::stable_sort(matches_.begin(), matches_.end(),
                     [](const Match& a, const Match& b) { return a.bound > b.bound; });
  }

  // A string that matches has matching ends, so halving finds the longest.
  int longest_match(const SuffixTree& tree, std::span<const TokenId> text) {
    const auto matches = [&](int n) {
      tree.find(text.last(static_cast<size_t>(n)), string(0));
      return !string(0).empty();
    };
    const int most = std::min(tree.depth() - 1, static_cast<int>(text.size()));
    int longest = 0;
    int too_long = 1;
    while (too_long <= most && matches(too_long)) {
      longest = too_long;
      too_long *= 2;
    }
    too_long = std::min(too_long, most + 1);
    while (too_long - longest > 1) {
      const int middle = (longest + too_long) / 2;
      (matches(middle) ? longest : too_long) = middle;
    }
    return longest;
  }

  // Grows a tree from string(0) in proposal_. Gives up when its sum cannot reach `score`.
  void grow(const SuffixTree& tree, int budget, int max_depth, double score) {
    proposal_.tokens.clear();
    proposal_.score = 0.0;
    heap_.clear();
    n_found_ = 0;
    find_candidates(tree, 0, {.probability = 1.0}, kRoot);
    size_t n_strings = 1;
    for (int left = budget; left > 0 && !heap_.empty(); --left) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate next = heap_.back();
      heap_.pop_back();
      if (proposal_.score + next.probability * left < score) return;
      proposal_.score += next.probability;
      proposal_.tokens.push_back({next.token, next.parent, next.probability, next.n_seen});
      if (next.depth == max_depth) continue;
      string(n_strings);
      tree.extend(string(next.parent_string), next.token, string(n_strings));
      find_candidates(tree, n_strings, next, static_cast<int32_t>(proposal_.tokens.size()) - 1);
      ++n_strings;
    }
  }

  // What follows a string that ends with the token `node`.
  void find_candidates(const SuffixTree& tree, size_t index, const Candidate& node, int32_t parent) {
    if (string(index).empty()) return;
    const int64_t total =
        tree.continuations(string(index), options_.min_probability / node.probability, found_);
    if (node.depth == 0) proposal_.n_matches = total;
    if (options_.shape == "path" && !found_.empty()) found_.erase(found_.begin() + 1, found_.end());
    for (const auto& next : found_) {
      const double share = static_cast<double>(next.count) / static_cast<double>(total);
      heap_.push_back({.probability = node.probability * share,
                       .depth = node.depth + 1,
                       .order = n_found_++,
                       .n_seen = next.count,
                       .token = next.token,
                       .parent = parent,
                       .parent_string = index});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  SuffixTree::Occurrences& string(size_t index) {
    if (index >= strings_.size()) strings_.resize(index + 1);
    return strings_[index];
  }

  const SuffixOptions& options_;
  Proposal proposal_;    // the one that grows
  Proposal found_best_;  // of one tree
  std::vector<Match> matches_;
  std::vector<Candidate> heap_;
  int n_found_ = 0;
  std::vector<SuffixTree::Occurrences> strings_;
  std::vector<SuffixTree::Continuation> found_;
};

class SuffixRequestDrafter : public RequestDrafter {
 public:
  SuffixRequestDrafter(SuffixDrafter& method, std::span<const TokenId> prompt)
      : method_(method), own_(method.options().depth), proposer_(method.options()) {
    append(prompt);
    n_prompt_ = text_.size();
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    Proposal best;
    if (limits.max_depth < 1) return;
    proposer_.improve(own_, text_, limits, best);
    const bool from_answers = proposer_.improve(method_.answers(), text_, limits, best);
    // Probabilities are of what was seen; what never was counts as once more.
    const double seen =
        static_cast<double>(best.n_matches) / (static_cast<double>(best.n_matches) + 1.0);
    for (const auto& token : best.tokens) {
      tree.add({.token = token.token,
                .parent = token.parent,
                .score = static_cast<float>(seen * token.probability),
                .source = from_answers ? DraftSource::kDatastore : DraftSource::kInput,
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
  SuffixDrafter& method_;
  SuffixTree own_;
  Proposer proposer_;
  std::vector<TokenId> text_;
  size_t n_prompt_ = 0;
};

}  // namespace

void SuffixOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"depth", "Tokens of match and draft together, at most"}, depth, {2, 1024});
  visitor.visit({"tokens", "Tokens to draft at most"}, tokens, {1, 1024});
  visitor.visit({"factor", "Tokens to draft per token matched"}, factor, {0.0, 1024.0});
  visitor.visit({"offset", "Tokens to draft besides"}, offset, {-1024.0, 1024.0});
  visitor.visit({"min-probability", "Least probability of a token"}, min_probability, {0.001, 1.0});
  visitor.visit({"shape", "Draft a tree or the most probable path"}, shape, kShapes);
  visitor.visit({"max-answers", "Earlier answers to remember"}, max_answers, {0, 100'000'000});
  visitor.visit({"max-answer-tokens", "Tokens of earlier answers to remember (about 180 bytes each)"},
                max_answer_tokens, {0, 1 << 30});
}

SuffixDrafter::SuffixDrafter(SuffixOptions options)
    : options_(std::move(options)), answers_(options_.depth) {}

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
