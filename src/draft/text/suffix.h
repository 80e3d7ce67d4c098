// SuffixDecoding: what most often followed the longest end of the text that occurred
// before, in the request's own text or in earlier answers.
//
// Oliaro, Jia, Campos, Qiao, "SuffixDecoding: Extreme Speculative Decoding for Emerging AI
// Applications", 2024 (arXiv 2411.04975), and its code in ArcticInference. For every length
// of a match, a tree of at most factor * length + offset tokens is grown, the most probable
// token first, where a token's probability is the product of its shares along the path and
// at least 0.1. The tree with the greatest sum of probabilities wins; of equals that of the
// longer match, and the request's own text before earlier answers.
//
// Where we differ:
// - A token's share is of all that follows; the code divides by all occurrences, among them
//   the end of the text itself, which nothing follows, and so halves the probability of
//   what was seen once before.
// - Trees by default, as in the paper; vLLM uses paths.
// - Answers enter the shared tree when their request ends well, not while it runs.
// - Besides the number of answers (100,000) their tokens are limited, so that memory is.
// - Match lengths whose sum cannot be the greatest are skipped. The result is the same.
// - A node's score allows for what was never seen; the choice does not.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/option_visitor.h"
#include "draft/drafter.h"
#include "draft/text/suffix_tree.h"

namespace forerun {

struct SuffixOptions {
  int depth = 64;                // tokens of match and draft together
  int tokens = 64;               // to draft at most
  double factor = 1.0;           // tokens to draft per token matched
  double offset = 0.0;           // tokens to draft besides
  double min_probability = 0.1;  // of a token
  std::string shape = "tree";
  static constexpr std::string_view kShapes[] = {"tree", "path"};
  int max_answers = 100'000;  // that the shared tree holds
  int max_answer_tokens = 1 << 20;

  void describe(OptionVisitor& visitor) {
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
};

class SuffixDrafter : public Drafter {
 public:
  explicit SuffixDrafter(SuffixOptions options)
      : options_(std::move(options)), answers_(options_.depth) {}
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override;

  const SuffixOptions& options() const { return options_; }
  const SuffixTree& answers() const { return answers_; }
  void learn(std::span<const TokenId> answer);

 private:
  SuffixOptions options_;
  SuffixTree answers_;
};

}  // namespace forerun
