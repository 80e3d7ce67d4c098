#include "model/llama/llama_texts.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {
namespace {

int n_alike(std::span<const Written> a, std::span<const Written> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

LlamaTexts::LlamaTexts(SequenceMemory& memory, int n_sequences, bool copies_parts)
    : memory_(memory), copies_parts_(copies_parts), texts_(static_cast<size_t>(n_sequences)) {}

int LlamaTexts::n_usable(const Text& of, std::span<const Written> text) const {
  const int n = n_alike(of.tokens, text);
  return copies_parts_ || n == std::ssize(of.tokens) ? n : 0;
}

// Its own, one that nobody has, one that was used the longest ago.
std::optional<int> LlamaTexts::choose(std::optional<SequenceId> owner) const {
  std::optional<int> best;
  const auto rank = [&](const Text& text) {
    if (owner && text.owner == owner) return 0;
    return text.tokens.empty() ? 1 : text.owner ? 3 : 2;
  };
  for (int i = 0; i < std::ssize(texts_); ++i) {
    const Text& text = texts_[static_cast<size_t>(i)];
    if (text.is_taken) continue;
    const auto key = [&](const Text& t) { return std::pair(rank(t), t.last_used); };
    if (!best || key(text) < key(texts_[static_cast<size_t>(*best)])) best = i;
  }
  return best;
}

void LlamaTexts::forget(int sequence) {
  if (!at(sequence).tokens.empty()) memory_.clear(sequence);
  at(sequence).tokens.clear();
}

std::optional<LlamaTexts::Place> LlamaTexts::take(std::span<const Written> text,
                                                  std::optional<SequenceId> owner) {
  const auto chosen = choose(owner);
  if (!chosen) return std::nullopt;
  Text& target = at(*chosen);
  target.owner = owner;
  target.is_taken = true;
  target.last_used = ++n_taken_;

  const int n_own = n_alike(target.tokens, text);
  const bool keeps_own =
      n_own == std::ssize(target.tokens) || (n_own > 0 && memory_.truncate(*chosen, n_own));
  if (keeps_own) {
    target.tokens.resize(static_cast<size_t>(n_own));
  } else {
    forget(*chosen);
  }
  const auto most = std::ranges::max_element(
      texts_, {}, [&](const Text& other) { return &other == &target ? -1 : n_usable(other, text); });
  const int n_there = static_cast<int>(target.tokens.size()), n_other = n_usable(*most, text);
  if (&*most == &target || n_other <= n_there) return Place{*chosen, n_there};
  if (!copies_parts_) forget(*chosen);
  memory_.copy(static_cast<int>(most - texts_.begin()), *chosen, static_cast<int>(target.tokens.size()),
               n_other);
  target.tokens.assign(text.begin(), text.begin() + n_other);
  return Place{*chosen, n_other};
}

void LlamaTexts::append(int sequence, std::span<const Written> more) {
  CHECK(at(sequence).is_taken);
  at(sequence).tokens.insert(at(sequence).tokens.end(), more.begin(), more.end());
}

void LlamaTexts::release_all() {
  for (Text& text : texts_) text.is_taken = false;
}

void LlamaTexts::clear_others() {
  clear_if([](auto) { return true; });
}

void LlamaTexts::clear_if(const std::function<bool(std::optional<SequenceId> owner)>& is_over) {
  for (int i = 0; i < std::ssize(texts_); ++i) {
    if (at(i).is_taken || !is_over(at(i).owner)) continue;
    forget(i);
    at(i).owner.reset();
  }
}

}  // namespace forerun
