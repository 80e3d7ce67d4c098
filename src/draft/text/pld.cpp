#include "draft/text/pld.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "retrieval/child_map.h"

namespace forerun {
namespace {

constexpr std::array<std::string_view, 2> kMatches = {"first", "last"};

// How often the first token is right grows with the match, by about a quarter per token
// matched; later tokens are right four times out of five where those before them are.
constexpr float kPerMatchedToken = 0.25f;
constexpr int kMostMatched = 3;
constexpr float kLaterRight = 0.8f;

// Where the n-grams of a growing text occur. A trie of n-grams read backwards, so that one
// walk finds the longest one the text ends with.
class NgramIndex {
 public:
  NgramIndex(int max_length, bool keep_first) : max_length_(max_length), keep_first_(keep_first) {}

  // `text` grew by one token: the n-grams before that token have a continuation now.
  void grow(std::span<const TokenId> text) {
    const auto next = static_cast<int32_t>(text.size()) - 1;
    int32_t node = kTop;
    for (int n = 1; n <= std::min(max_length_, next); ++n) {
      const TokenId token = text[static_cast<size_t>(next - n)];
      int32_t child = children_.find(node, token);
      if (child == ChildMap::kNone) {
        child = static_cast<int32_t>(next_.size());
        next_.push_back(next);
        children_.set(node, token, child);
      } else if (!keep_first_) {
        next_[static_cast<size_t>(child)] = next;
      }
      node = child;
    }
  }

  struct Match {
    int length = 0;    // 0: none
    int32_t next = 0;  // the place behind the occurrence
  };
  Match longest(std::span<const TokenId> text) const {
    Match match;
    int32_t node = kTop;
    for (int n = 1; n <= std::min<int>(max_length_, static_cast<int>(text.size())); ++n) {
      node = children_.find(node, text[text.size() - static_cast<size_t>(n)]);
      if (node == ChildMap::kNone) break;
      match = {.length = n, .next = next_[static_cast<size_t>(node)]};
    }
    return match;
  }

 private:
  static constexpr int32_t kTop = 0;

  int max_length_;
  bool keep_first_;
  ChildMap children_;
  std::vector<int32_t> next_ = {0};  // per node: the place behind its n-gram's occurrence
};

class PldRequestDrafter : public RequestDrafter {
 public:
  PldRequestDrafter(const PldOptions& options, std::span<const TokenId> prompt)
      : options_(options), index_(options.ngram, options.match == "first") {
    append(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const auto match = index_.longest(text_);
    if (match.length < options_.min_ngram) return;
    const int room = std::min({options_.tokens, limits.max_nodes, limits.max_depth});
    const int n = std::min(room, static_cast<int>(text_.size()) - match.next);
    int32_t parent = kRoot;
    float score = kPerMatchedToken * static_cast<float>(std::min(match.length, kMostMatched));
    for (int i = 0; i < n; ++i) {
      parent = tree.add({.token = text_[static_cast<size_t>(match.next + i)],
                         .parent = parent,
                         .score = score,
                         .source = DraftSource::kInput,
                         .match_length = match.length});
      score *= kLaterRight;
    }
  }

  void append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) {
      text_.push_back(token);
      index_.grow(text_);
    }
  }

 private:
  PldOptions options_;
  NgramIndex index_;
  std::vector<TokenId> text_;
};

}  // namespace

void PldOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"ngram", "Tokens to match at most"}, ngram, {1, 64});
  visitor.visit({"min-ngram", "Tokens to match at least"}, min_ngram, {1, 64});
  visitor.visit({"tokens", "Tokens to draft"}, tokens, {1, 1024});
  visitor.visit({"match", "Which earlier occurrence to continue"}, match, kMatches);
}

std::unique_ptr<RequestDrafter> PldDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<PldRequestDrafter>(options_, prompt);
}

}  // namespace forerun
