// Lookahead decoding: the model improves a window of guesses beside its answer, and the
// n-grams that come out of it are verified when their first token turns up.
//
// Fu, Bailis, Stoica, Zhang, "Break the Sequential Dependency of LLM Inference Using
// Lookahead Decoding", ICML 2024 (arXiv 2402.02057). The window has W columns of N - 1
// levels. The levels 0 of all columns follow each other from the last token of the text,
// which is level 0 of column 0; level l of a column follows its levels 0 to l - 1 and the
// levels 0 of the columns before it. So a window is a tree below the last token: a spine of
// levels 0, and at each place of it a branch with the higher levels of that column. The
// model's token behind the top level of a column makes an n-gram of N tokens with the
// column; then every column drops its lowest level and takes that token as its highest.
// N-grams are kept by their first token, the G used last of each, and those of the last
// token of the text are branches of the draft too.
//
// At the beginning there is only level 0, W + N - 3 tokens picked from the text; each of the
// first N - 2 passes adds a level and drops the first column.
//
// Where we differ:
// - Guesses follow the request's sampler: the model's token is drawn as it would be in the
//   text, which for greedy answers is the code's argmax.
// - A window token that the model confirms is accepted like any other; the code looks at
//   n-grams alone, and of those never credits the last token.
// - Branches that begin alike share rows.
// - A window that does not fit the limits runs with the columns that do; columns that did
//   not run stay as they are.
// - N-grams of the text itself are kept too, as the authors' own example has it; an option,
//   which Spec-Bench leaves off.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/option_visitor.h"
#include "draft/drafter.h"

namespace forerun {

struct JacobiOptions {
  int level = 5;            // N: tokens of an n-gram
  int window = 7;           // W: columns of the window
  int guesses = 7;          // G: n-grams kept per first token
  bool text_ngrams = true;  // keep n-grams of the text too

  void describe(OptionVisitor& visitor) {
    visitor.visit({"level", "Tokens of an n-gram (N)"}, level, {3, 32});
    visitor.visit({"window", "Columns of the window (W)"}, window, {1, 256});
    visitor.visit({"guesses", "N-grams kept per first token (G)"}, guesses, {1, 256});
    visitor.visit({"text-ngrams", "Keep n-grams of the text too"}, text_ngrams);
  }
};

// N-grams by their first token; of each first token those that came last.
class NgramPool {
 public:
  // Of `n_behind` tokens behind the first one.
  NgramPool(int n_behind, int max_per_token)
      : n_behind_(static_cast<size_t>(n_behind)),
        max_tokens_(n_behind_ * static_cast<size_t>(max_per_token)) {}

  void add(TokenId first, std::span<const TokenId> behind);
  // What may follow `first`, the latest last: n_behind tokens each, one after another.
  std::span<const TokenId> behind(TokenId first) const;

 private:
  size_t n_behind_;
  size_t max_tokens_;  // of what is kept per first token
  std::unordered_map<TokenId, std::vector<TokenId>> ngrams_;
};

// The window of guesses.
class JacobiWindow {
 public:
  // Picks the first guesses from `text`, which is not empty.
  JacobiWindow(int level, int window, uint64_t seed, std::span<const TokenId> text);

  // Adds the columns that fit below the root, whole columns only.
  void draft(const DraftLimits& limits, DraftTree& tree) const;
  // The rows that draft() adds to a tree that has none of them yet.
  int n_rows() const { return static_cast<int>(columns_.size() * columns_.front().size()) - 1; }

  // The model has run `tree`, whose root is the token `last`: harvests n-grams into `pool`
  // (while the window fills there are none) and moves on. Columns of which a row is missing
  // do not count.
  void observe(const DraftTree& tree, const TargetTokens& target, TokenId last, NgramPool& pool);

 private:
  size_t max_levels_;  // N - 1
  // [column][level]. Level 0 of column 0 stands for the last token of the text.
  std::vector<std::vector<TokenId>> columns_;
};

class JacobiDrafter : public Drafter {
 public:
  explicit JacobiDrafter(JacobiOptions options) : options_(options) {}
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override;

 private:
  JacobiOptions options_;
};

}  // namespace forerun
