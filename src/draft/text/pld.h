// Prompt lookup decoding: what followed the last few tokens the last time they occurred
// in this text.
//
// Saxena, "Prompt Lookup Decoding", 2023. The longest n-gram (3 tokens, then 2, then 1)
// that the text ends with and that occurs in it before gives the next 10 tokens.
//
// Like Hugging Face's version and unlike the original, a continuation that the end of the
// text cuts short is used as it is, and without any match nothing is drafted (the original
// asks for 10 whole tokens, and drafts token 100 for want of a match). The published codes
// take the leftmost occurrence; ours takes the latest one unless told otherwise, which
// drafts a little better: recent text is the better guide.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/option_visitor.h"
#include "draft/drafter.h"

namespace forerun {

struct PldOptions {
  int ngram = 3;               // tokens to match at most
  int min_ngram = 1;           // and at least
  int tokens = 10;             // to draft
  std::string match = "last";  // which occurrence
  static constexpr std::string_view kMatches[] = {"first", "last"};

  void describe(OptionVisitor& visitor) {
    visitor.visit({"ngram", "Tokens to match at most"}, ngram, {1, 64});
    visitor.visit({"min-ngram", "Tokens to match at least"}, min_ngram, {1, 64});
    visitor.visit({"tokens", "Tokens to draft"}, tokens, {1, 1024});
    visitor.visit({"match", "Which earlier occurrence to continue"}, match, kMatches);
  }
};

class PldDrafter : public Drafter {
 public:
  explicit PldDrafter(PldOptions options) : options_(std::move(options)) {}
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override;

 private:
  PldOptions options_;
};

}  // namespace forerun
