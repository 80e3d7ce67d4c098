#include "grammar/grammar.h"

#include <llama-grammar.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gguf/ggml_log.h"
#include "grammar/grammar_text.h"
#include "text/large_stack.h"

namespace forerun {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr size_t kShortText = size_t{16} << 10;
constexpr size_t kStackBytes = size_t{128} << 20;
// Characters that are looked ahead at most for what must follow.
constexpr int kMostForced = 64;

// The character that must follow; nullopt: there are several, or the text may end.
std::optional<uint32_t> forced_character(const llama_grammar_stacks& stacks) {
  std::optional<uint32_t> forced;
  for (const llama_grammar_stack& stack : stacks) {
    if (stack.empty()) return std::nullopt;
    const llama_grammar_element* next = stack.back();
    const bool is_one = next->type == LLAMA_GRETYPE_CHAR && next[1].type != LLAMA_GRETYPE_CHAR_ALT &&
                        next[1].type != LLAMA_GRETYPE_CHAR_RNG_UPPER;
    if (!is_one || forced.value_or(next->value) != next->value) return std::nullopt;
    forced = next->value;
  }
  return forced;
}

void add_utf8(std::string& text, uint32_t character) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) return add(character);
  if (character < 0x800) {
    add(0xC0 | character >> 6);
  } else {
    if (character < 0x10000) {
      add(0xE0 | character >> 12);
    } else {
      add(0xF0 | character >> 18);
      add(0x80 | (character >> 12 & 0x3F));
    }
    add(0x80 | (character >> 6 & 0x3F));
  }
  add(0x80 | (character & 0x3F));
}

// What of a libllama grammar changes with the text.
struct Place {
  llama_grammar_stacks stacks;  // into the rules, which all places of a grammar share
  llama_partial_utf8 partial;
  bool awaits_trigger;
  std::string trigger_buffer;
  std::vector<llama_grammar::token_pos> trigger_positions;
};

// A libllama grammar that is put to one place or another. Copying one would copy its rules too, and look
// for every place in them.
class Machine {
 public:
  Machine(const Grammar& grammar, const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    std::vector<const char*> patterns;
    for (const std::string& pattern : grammar.trigger_patterns) patterns.push_back(pattern.c_str());
    std::vector<llama_token> tokens;
    for (const TokenId token : grammar.trigger_tokens) tokens.push_back(to_int(token));
    check_grammar_text(grammar.text, vocabulary_);
    const auto read = [&] {
      GgmlLogCapture log;
      try {
        grammar_.reset(llama_grammar_init_impl(vocabulary_.raw(), grammar.text.c_str(), "root",
                                               grammar.is_lazy, patterns.data(), patterns.size(),
                                               tokens.data(), tokens.size()));
      } catch (const std::exception& error) {
        fail(ErrorCode::kInvalidArgument, "the grammar makes no sense: {}", error.what());
      }
    };
    // Rules may refer to each other in one long chain, which is followed by recursion.
    if (grammar.text.size() > kShortText) {
      run_on_large_stack(kStackBytes, read);
    } else {
      read();
    }
    if (grammar_ == nullptr) {
      fail(ErrorCode::kInvalidArgument,
           "the grammar cannot be used: it needs a rule \"root\", and none that begins with itself");
    }
  }

  // The grammar at a place; `number` tells places apart.
  llama_grammar& at(const Place& place, int64_t number) {
    if (number != current_) {
      grammar_->stacks = place.stacks;
      grammar_->partial_utf8 = place.partial;
      grammar_->awaiting_trigger = place.awaits_trigger;
      grammar_->trigger_buffer = place.trigger_buffer;
      grammar_->trigger_buffer_positions = place.trigger_positions;
      current_ = number;
    }
    return *grammar_;
  }
  // Where it is now, under a new number.
  std::pair<Place, int64_t> place() {
    current_ = ++n_places_;
    return {{.stacks = grammar_->stacks,
             .partial = grammar_->partial_utf8,
             .awaits_trigger = grammar_->awaiting_trigger,
             .trigger_buffer = grammar_->trigger_buffer,
             .trigger_positions = grammar_->trigger_buffer_positions},
            current_};
  }
  std::vector<llama_token_data>& candidates() { return candidates_; }
  // The text that must follow that place, as far as it is sure.
  std::string forced_text(const Place& place, int64_t number) {
    llama_grammar& grammar = at(place, number);
    std::string text;
    if (grammar.awaiting_trigger || grammar.partial_utf8.n_remain != 0) return text;
    for (int i = 0; i < kMostForced; ++i) {
      const auto character = forced_character(grammar.stacks);
      if (!character) break;
      add_utf8(text, *character);
      llama_grammar_accept(&grammar, *character);
      current_ = kNowhere;
    }
    return text;
  }
  // As they lie within a text: some vocabularies put a space in front of it.
  std::vector<TokenId> tokens(const std::string& text) const {
    const TokenizeOptions plain{.add_special = false};
    const std::vector<TokenId> before = vocabulary_.tokenize("\n", plain);
    std::vector<TokenId> all = vocabulary_.tokenize("\n" + text, plain);
    if (!std::ranges::equal(before, std::span(all).first(std::min(before.size(), all.size()))))
      return {};
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before.size()));
    return all;
  }

 private:
  struct Free {
    void operator()(llama_grammar* grammar) const { llama_grammar_free_impl(grammar); }
  };

  Vocabulary vocabulary_;
  std::unique_ptr<llama_grammar, Free> grammar_;
  static constexpr int64_t kNowhere = -1;  // between the places that have numbers
  int64_t current_ = 0;
  int64_t n_places_ = 0;
  std::vector<llama_token_data> candidates_;
};

// Behind a token that is not allowed.
class Nothing final : public Constraint {
 public:
  bool allows(TokenId) const override { return false; }
  void mask(std::span<float> logits) const override {
    std::fill(logits.begin(), logits.end(), kForbidden);
  }
  std::shared_ptr<const Constraint> after(TokenId) const override { return std::make_shared<Nothing>(); }
};

class GrammarConstraint final : public Constraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {
    std::tie(place_, number_) = machine_->place();
  }

  bool allows(TokenId token) const override {
    llama_token_data one{.id = to_int(token), .logit = 0, .p = 0};
    apply({&one, 1});
    return one.logit == 0;
  }

  void mask(std::span<float> logits) const override {
    auto& candidates = machine_->candidates();
    candidates.clear();
    for (size_t i = 0; i < logits.size(); ++i) {
      candidates.push_back({.id = static_cast<llama_token>(i), .logit = 0, .p = 0});
    }
    apply(candidates);
    for (const llama_token_data& candidate : candidates) {
      if (candidate.logit != 0) logits[static_cast<size_t>(candidate.id)] = kForbidden;
    }
  }

  std::shared_ptr<const Constraint> after(TokenId token) const override {
    if (!allows(token)) return std::make_shared<Nothing>();
    llama_grammar_accept_impl(machine_->at(place_, number_), to_int(token));
    return std::make_shared<GrammarConstraint>(machine_);
  }

  std::vector<TokenId> forced() const override {
    const std::string text = machine_->forced_text(place_, number_);
    if (text.empty()) return {};
    try {
      return machine_->tokens(text);
    } catch (const Error&) {
      return {};  // the vocabulary has no token for a character of it
    }
  }

 private:
  void apply(std::span<llama_token_data> candidates) const {
    llama_token_data_array array{
        .data = candidates.data(), .size = candidates.size(), .selected = -1, .sorted = false};
    llama_grammar_apply_impl(machine_->at(place_, number_), &array);
  }

  std::shared_ptr<Machine> machine_;
  Place place_;
  int64_t number_ = 0;
};

}  // namespace

std::shared_ptr<const Constraint> start_of(const Grammar& grammar, const Vocabulary& vocabulary) {
  std::shared_ptr<const Constraint> start =
      std::make_shared<GrammarConstraint>(std::make_shared<Machine>(grammar, vocabulary));
  for (const TokenId token : grammar.prefix) {
    if (!start->allows(token)) {
      fail(ErrorCode::kInvalidArgument, "the grammar does not allow what the prompt ends with");
    }
    start = start->after(token);
  }
  return start;
}

}  // namespace forerun
