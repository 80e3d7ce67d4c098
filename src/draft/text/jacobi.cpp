#include "draft/text/jacobi.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/hash.h"

namespace forerun {
namespace {

// N-grams are right about one time in three; a window is there to be improved, and its
// tokens are seldom right as they stand.
constexpr float kNgramScore = 0.3f;
constexpr float kWindowScore = 0.05f;
constexpr float kDecay = 0.7f;
constexpr uint64_t kSeed = 0;  // of the first guesses

// The child of `parent` with this token; added if there is none.
int32_t child_or_new(DraftTree& tree, int32_t parent, TokenId token, float first_score) {
  if (const auto child = tree.find_child(parent, token)) return *child;
  const float score = parent == kRoot ? first_score : std::min(first_score, tree[parent].score) * kDecay;
  return tree.add({.token = token, .parent = parent, .score = score, .source = DraftSource::kGuess});
}

class JacobiRequestDrafter : public RequestDrafter {
 public:
  JacobiRequestDrafter(const JacobiOptions& options, std::span<const TokenId> prompt)
      : options_(options), pool_(options.level - 1, options.guesses) {
    append(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (text_.empty()) return;
    if (!window_) window_.emplace(options_.level, options_.window, kSeed, text_);
    // N-grams first, as they pay now, but half of the room at least is the window's, as
    // far as it needs it.
    const int n_window = std::min(window_->n_rows(), limits.max_nodes / 2);
    draft_ngrams({.max_nodes = limits.max_nodes - n_window, .max_depth = limits.max_depth}, tree);
    window_->draft(limits, tree);
  }

  void observe(const DraftTree& tree, const TargetTokens& target) override {
    if (window_) window_->observe(tree, target, text_.back(), pool_);
  }

  void append(std::span<const TokenId> tokens) override {
    const auto n = static_cast<size_t>(options_.level);
    for (const TokenId token : tokens) {
      text_.push_back(token);
      if (options_.text_ngrams && text_.size() >= n) {
        const auto ngram = std::span<const TokenId>(text_).last(n);
        pool_.add(ngram.front(), ngram.subspan(1));
      }
    }
  }

 private:
  void draft_ngrams(const DraftLimits& limits, DraftTree& tree) const {
    const auto n_behind = static_cast<size_t>(options_.level - 1);
    auto left = pool_.behind(text_.back());
    for (; !left.empty(); left = left.first(left.size() - n_behind)) {  // the latest first
      int32_t node = kRoot;
      for (const TokenId token : left.last(n_behind)) {
        const bool fits = tree.size() < limits.max_nodes && tree.depth(node) < limits.max_depth;
        if (!fits && !tree.find_child(node, token)) break;
        node = child_or_new(tree, node, token, kNgramScore);
      }
    }
  }

  JacobiOptions options_;
  std::vector<TokenId> text_;
  NgramPool pool_;
  std::optional<JacobiWindow> window_;  // once there is a text to begin with
};

}  // namespace

void NgramPool::add(TokenId first, std::span<const TokenId> behind) {
  CHECK(behind.size() == n_behind_);
  auto& kept = ngrams_[first];
  auto place = kept.begin();
  while (place != kept.end() && !std::equal(behind.begin(), behind.end(), place)) {
    place += static_cast<ptrdiff_t>(n_behind_);
  }
  // One that is kept already moves to the end; otherwise the oldest leaves.
  if (place == kept.end() && kept.size() == max_tokens_) place = kept.begin();
  if (place != kept.end()) kept.erase(place, place + static_cast<ptrdiff_t>(n_behind_));
  kept.insert(kept.end(), behind.begin(), behind.end());
}

std::span<const TokenId> NgramPool::behind(TokenId first) const {
  const auto found = ngrams_.find(first);
  return found == ngrams_.end() ? std::span<const TokenId>{} : found->second;
}

JacobiWindow::JacobiWindow(int level, int window, uint64_t seed, std::span<const TokenId> text)
    : max_levels_(static_cast<size_t>(level) - 1) {
  CHECK(level >= 3 && window >= 1 && !text.empty());
  // Column 0 and one for each of the W + N - 3 first guesses.
  for (int i = 0; i < window + level - 2; ++i) {
    StableHash hash;
    hash.add(seed);
    hash.add(static_cast<uint64_t>(i));
    columns_.push_back({text[hash.value() % text.size()]});
  }
}

void JacobiWindow::draft(const DraftLimits& limits, DraftTree& tree) const {
  int32_t spine = kRoot;
  for (size_t column = 0; column < columns_.size(); ++column) {
    const auto& tokens = columns_[column];
    // The last token of the text, level 0 of column 0, is there already.
    const int n_new = static_cast<int>(tokens.size()) - (column == 0 ? 1 : 0);
    if (tree.size() + n_new > limits.max_nodes || tree.depth(spine) + n_new > limits.max_depth) return;
    if (column > 0) spine = child_or_new(tree, spine, tokens[0], kWindowScore);
    int32_t node = spine;
    for (size_t level = 1; level < tokens.size(); ++level)
      node = child_or_new(tree, node, tokens[level], kWindowScore);
  }
}

void JacobiWindow::observe(const DraftTree& tree, const TargetTokens& target, TokenId last,
                           NgramPool& pool) {
  // The model's token behind the top level of each column that ran.
  std::vector<std::optional<TokenId>> above(columns_.size());
  std::optional<int32_t> spine = kRoot;
  for (size_t column = 0; column < columns_.size() && spine; ++column) {
    const auto& tokens = columns_[column];
    if (column > 0) spine = tree.find_child(*spine, tokens[0]);
    std::optional<int32_t> node = spine;
    for (size_t level = 1; level < tokens.size() && node; ++level)
      node = tree.find_child(*node, tokens[level]);
    if (node && *node != kRoot) above[column] = target.after(*node);
  }
  if (std::count(above.begin(), above.end(), std::nullopt) == std::ssize(above)) return;
  if (columns_.front().size() < max_levels_) {
    // The first column goes, the others get a level. One whose row did not run repeats its last.
    for (size_t column = 1; column < columns_.size(); ++column) {
      columns_[column].push_back(above[column].value_or(columns_[column].back()));
    }
    columns_.erase(columns_.begin());
    return;
  }
  for (size_t column = 0; column < columns_.size(); ++column) {
    if (!above[column]) continue;
    auto& tokens = columns_[column];
    const TokenId first = column == 0 ? last : tokens[0];
    tokens.erase(tokens.begin());
    tokens.push_back(*above[column]);
    pool.add(first, tokens);
  }
}

std::unique_ptr<RequestDrafter> JacobiDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<JacobiRequestDrafter>(options_, prompt);
}

}  // namespace forerun
