#include "grammar/grammar.h"

#include <algorithm>
#include <limits>
#include <regex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "grammar/grammar_place.h"
#include "grammar/grammar_rules.h"
#include "grammar/grammar_states.h"
#include "text/large_stack.h"

namespace forerun {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
// Characters that are looked ahead at most for what must follow.
constexpr int kMostForced = 64;
// Masks of states are kept, as texts come back to them; together some megabytes.
constexpr size_t kMostMasks = 256;

// What a text says before what triggers a lazy grammar.
struct Waiting {
  struct Token {
    TokenId token;
    size_t first;  // byte of the text
  };
  std::string text;
  std::vector<Token> tokens;
};

// All that the places of one request's grammar share.
class SharedGrammar {
 public:
  SharedGrammar(const Grammar& grammar, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        states_(read_grammar(grammar.text, vocabulary)),
        trigger_tokens_(grammar.trigger_tokens) {
    try {
      for (const std::string& pattern : grammar.trigger_patterns) {
        trigger_patterns_.push_back({pattern, std::regex(pattern)});
      }
    } catch (const std::regex_error& error) {
      fail(ErrorCode::kInvalidArgument, "a pattern that triggers the grammar makes no sense: {}",
           error.what());
    }
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  GrammarStates& states() { return states_; }
  GrammarPlace start() const { return {.state = states_.start()}; }

  GrammarPlace after(GrammarPlace place, TokenId token, std::string_view text) {
    const GrammarPlace by_text = text.empty() ? GrammarPlace{} : after_text(states_, place, text);
    if (place.n_missing > 0 || !states_.names_tokens(place.state)) return by_text;
    const GrammarPlace by_name{.state = states_.after_token(place.state, token)};
    if (by_text.is_dead() || by_name.is_dead()) return by_text.is_dead() ? by_name : by_text;
    return {.state = states_.either(by_text.state, by_name.state)};
  }
  GrammarPlace after(GrammarPlace place, TokenId token) {
    return after(place, token, vocabulary_.piece(token, ControlTokens::kRendered));
  }

  bool triggers(TokenId token) const {
    return std::ranges::find(trigger_tokens_, token) != trigger_tokens_.end();
  }
  // Where what triggers begins in a text; npos: it does not.
  size_t trigger_in(const std::string& text) const {
    size_t found = std::string::npos;
    const auto search = [&] {
      for (const llama_grammar_trigger_pattern& pattern : trigger_patterns_) {
        found = pattern.find(text);
        if (found != std::string::npos) return;
      }
    };
    if (trigger_patterns_.empty()) return found;
    run_on_stack_for_regex(text.size(), search);
    return found;
  }

  // By token, whether it may follow. Valid until the next call.
  const std::vector<bool>& allowed(GrammarPlace place) {
    if (masks_.size() >= kMostMasks) masks_.clear();
    const bool is_kept = place.n_missing == 0;
    std::vector<bool>& mask = is_kept ? masks_[place.state] : other_mask_;
    if (is_kept && !mask.empty()) return mask;
    mask.assign(vocabulary_.n_tokens(), false);
    const auto allow = [&](TokenId token) { mask[static_cast<size_t>(to_int(token))] = true; };
    for_each_allowed(states_, place, vocabulary_.sorted_pieces(), allow);
    const bool names_tokens = is_kept && states_.names_tokens(place.state);
    const bool may_end = is_kept && states_.may_end(place.state);
    for (size_t id = 0; id < mask.size(); ++id) {
      const TokenId token{static_cast<int32_t>(id)};
      const bool is_named =
          names_tokens && states_.after_token(place.state, token) != GrammarStates::kDead;
      if (vocabulary_.is_end_of_generation(token) ? may_end : is_named) allow(token);
    }
    return mask;
  }

 private:
  Vocabulary vocabulary_;
  GrammarStates states_;
  std::vector<TokenId> trigger_tokens_;
  std::vector<llama_grammar_trigger_pattern> trigger_patterns_;
  std::unordered_map<GrammarStates::State, std::vector<bool>> masks_;
  std::vector<bool> other_mask_;
};

class GrammarConstraint final : public Constraint {
 public:
  GrammarConstraint(std::shared_ptr<SharedGrammar> shared, GrammarPlace place)
      : shared_(std::move(shared)), place_(place) {}

  bool allows(TokenId token) const override {
    if (shared_->vocabulary().is_end_of_generation(token)) {
      return place_.n_missing == 0 && shared_->states().may_end(place_.state);
    }
    return !shared_->after(place_, token).is_dead();
  }

  void mask(std::span<float> logits) const override {
    const std::vector<bool>& allowed = shared_->allowed(place_);
    if (shared_->states().is_exhausted()) {
      fail(ErrorCode::kInvalidArgument,
           "the grammar is too ambiguous: too many of its rules can read the same text");
    }
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i >= allowed.size() || !allowed[i]) logits[i] = kForbidden;
    }
  }

  std::shared_ptr<const Constraint> after(TokenId token) const override {
    GrammarPlace next = place_;
    if (!shared_->vocabulary().is_end_of_generation(token)) {
      next = shared_->after(place_, token);
    } else if (!allows(token)) {
      next = {};
    }
    return std::make_shared<GrammarConstraint>(shared_, next);
  }

  std::vector<TokenId> forced() const override {
    const std::string text = forced_text(shared_->states(), place_, kMostForced);
    if (text.empty()) return {};
    try {
      return tokens_of(text);
    } catch (const Error&) {
      return {};  // the vocabulary has no token for a character of it
    }
  }

 private:
  // As they lie within a text: some vocabularies put a space in front of it.
  std::vector<TokenId> tokens_of(const std::string& text) const {
    const TokenizeOptions plain{.add_special = false};
    const std::vector<TokenId> before = shared_->vocabulary().tokenize("\n", plain);
    std::vector<TokenId> all = shared_->vocabulary().tokenize("\n" + text, plain);
    if (!std::ranges::equal(before, std::span(all).first(std::min(before.size(), all.size()))))
      return {};
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before.size()));
    return all;
  }

  std::shared_ptr<SharedGrammar> shared_;
  GrammarPlace place_;
};

// Before what triggers a lazy grammar.
class WaitingConstraint final : public Constraint {
 public:
  WaitingConstraint(std::shared_ptr<SharedGrammar> shared, Waiting waiting)
      : shared_(std::move(shared)), waiting_(std::move(waiting)) {}

  bool allows(TokenId) const override { return true; }
  void mask(std::span<float>) const override {}

  std::shared_ptr<const Constraint> after(TokenId token) const override {
    if (shared_->triggers(token)) {
      return std::make_shared<GrammarConstraint>(shared_, shared_->after(shared_->start(), token));
    }
    Waiting waiting = waiting_;
    waiting.tokens.push_back({.token = token, .first = waiting.text.size()});
    waiting.text += shared_->vocabulary().piece(token, ControlTokens::kRendered);
    const size_t trigger = shared_->trigger_in(waiting.text);
    if (trigger == std::string::npos) {
      return std::make_shared<WaitingConstraint>(shared_, std::move(waiting));
    }
    return std::make_shared<GrammarConstraint>(shared_, behind(waiting, trigger));
  }

 private:
  // The grammar reads what triggered it, from there on.
  GrammarPlace behind(const Waiting& waiting, size_t trigger) const {
    GrammarPlace place = shared_->start();
    const std::string_view text = waiting.text;
    for (size_t i = 0; i < waiting.tokens.size(); ++i) {
      const size_t end = i + 1 < waiting.tokens.size() ? waiting.tokens[i + 1].first : text.size();
      if (end <= trigger) continue;
      const size_t first = std::max(waiting.tokens[i].first, trigger);
      place = shared_->after(place, waiting.tokens[i].token, text.substr(first, end - first));
    }
    return place;
  }

  std::shared_ptr<SharedGrammar> shared_;
  Waiting waiting_;
};

}  // namespace

std::shared_ptr<const Constraint> start_of(const Grammar& grammar, const Vocabulary& vocabulary) {
  const auto shared = std::make_shared<SharedGrammar>(grammar, vocabulary);
  std::shared_ptr<const Constraint> start;
  if (grammar.is_lazy) {
    start = std::make_shared<WaitingConstraint>(shared, Waiting{});
  } else {
    start = std::make_shared<GrammarConstraint>(shared, shared->start());
  }
  for (const TokenId token : grammar.prefix) {
    if (!start->allows(token)) {
      fail(ErrorCode::kInvalidArgument, "the grammar does not allow what the prompt ends with");
    }
    start = start->after(token);
  }
  return start;
}

}  // namespace forerun
