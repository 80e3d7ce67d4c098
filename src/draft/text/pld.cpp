#include "draft/text/pld.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace forerun {
namespace {

// How often the first token is right grows with the match, by about a quarter per token
// matched; later tokens are right four times out of five where those before them are.
constexpr float kPerMatchedToken = 0.25f;
constexpr int kMostMatched = 3;
constexpr float kLaterRight = 0.8f;

class PldRequestDrafter : public RequestDrafter {
 public:
  PldRequestDrafter(const PldOptions& options, std::span<const TokenId> prompt) : options_(options) {
    append(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const auto [length, next] = longest_match();
    if (length < options_.min_ngram) return;
    const auto tokens = limits.fitting(std::span(text_).subspan(next));
    const auto n = std::min(tokens.size(), static_cast<size_t>(options_.tokens));
    tree.add_chain(tokens.first(n),
                   {.score = kPerMatchedToken * static_cast<float>(std::min(length, kMostMatched)),
                    .source = DraftSource::kInput,
                    .match_length = length},
                   kLaterRight);
  }

  void append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) {
      if (!text_.empty()) behind_[text_.back()].push_back(text_.size());
      text_.push_back(token);
    }
  }

 private:
  struct Match {
    int length = 0;   // 0: none
    size_t next = 0;  // the place behind the occurrence
  };
  // Of the longest n-gram that the text ends with, in the order asked for until none can be longer.
  Match longest_match() const {
    Match longest;
    const auto found = text_.empty() ? behind_.end() : behind_.find(text_.back());
    if (found == behind_.end()) return longest;
    const auto& [last_token, places] = *found;
    const bool from_first = options_.match == "first";
    for (size_t i = 0; i < places.size() && longest.length < options_.ngram; ++i) {
      const size_t next = from_first ? places[i] : places[places.size() - 1 - i];
      size_t n = 1;
      while (n < next && text_[next - 1 - n] == text_[text_.size() - 1 - n]) ++n;
      const int length = static_cast<int>(std::min(n, static_cast<size_t>(options_.ngram)));
      if (length > longest.length) longest = {.length = length, .next = next};
    }
    return longest;
  }

  PldOptions options_;
  std::vector<TokenId> text_;
  std::unordered_map<TokenId, std::vector<size_t>> behind_;  // places behind each token, in order
};

}  // namespace

std::unique_ptr<RequestDrafter> PldDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<PldRequestDrafter>(options_, prompt);
}

}  // namespace forerun
