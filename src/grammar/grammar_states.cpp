#include "grammar/grammar_states.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "core/hash.h"

namespace forerun {
namespace {

using Element = llama_grammar_element;

bool is_token(const Element& element) {
  return element.type == LLAMA_GRETYPE_TOKEN || element.type == LLAMA_GRETYPE_TOKEN_NOT;
}

bool matches(const Element& element, TokenId token) {
  const bool is_same = element.value == static_cast<uint32_t>(to_int(token));
  return is_same == (element.type == LLAMA_GRETYPE_TOKEN);
}

// Calls visit(first, last) for the ranges of the characters that begin at an element; returns what is
// behind them.
template <typename Visit>
const Element* visit_ranges(const Element* at, const Visit& visit) {
  do {
    const bool is_range = at[1].type == LLAMA_GRETYPE_CHAR_RNG_UPPER;
    if (at->type == LLAMA_GRETYPE_CHAR_ANY) {
      visit(uint32_t{0}, std::numeric_limits<uint32_t>::max());
    } else {
      visit(at->value, is_range ? at[1].value : at->value);
    }
    at += is_range ? 2 : 1;
  } while (at->type == LLAMA_GRETYPE_CHAR_ALT);
  return at;
}

// What is behind the characters at an element, where this is one of them; nullptr otherwise.
const Element* behind_match(const Element* at, uint32_t character) {
  bool is_found = false;
  const Element* end = visit_ranges(at, [&](uint32_t first, uint32_t last) {
    is_found = is_found || (first <= character && character <= last);
  });
  return is_found == (at->type != LLAMA_GRETYPE_CHAR_NOT) ? end : nullptr;
}

}  // namespace

size_t GrammarStates::Hash::operator()(const NodeData& node) const {
  StableHash hash;
  hash.add(reinterpret_cast<uintptr_t>(node.top));
  hash.add(uint64_t{node.below});
  return hash.value();
}

size_t GrammarStates::Hash::operator()(const std::vector<Node>& nodes) const {
  StableHash hash;
  hash.add(std::as_bytes(std::span(nodes)));
  return hash.value();
}

GrammarStates::GrammarStates(GrammarRules rules) : rules_(std::move(rules)) {
  find_classes();
  nodes_.push_back({});  // kBottom
  states_.emplace_back();
  state_ids_.emplace(std::vector<Node>{}, kDead);
  rules_.rules.push_back({{LLAMA_GRETYPE_RULE_REF, rules_.root}, {LLAMA_GRETYPE_END, 0}});
  start_ = state_of(places_at(push(rules_.rules.back().data(), kBottom)));
}

void GrammarStates::find_classes() {
  std::set<uint32_t> begins{0};
  for (const llama_grammar_rule& rule : rules_.rules) {
    for (const Element* at = rule.data(); at < rule.data() + rule.size();) {
      const bool has_characters = at->type == LLAMA_GRETYPE_CHAR || at->type == LLAMA_GRETYPE_CHAR_NOT;
      if (!has_characters) {
        ++at;
        continue;
      }
      at = visit_ranges(at, [&](uint32_t first, uint32_t last) {
        begins.insert(first);
        if (last < std::numeric_limits<uint32_t>::max()) begins.insert(last + 1);
      });
    }
  }
  class_begins_.assign(begins.begin(), begins.end());
  for (uint32_t character = 0; character < ascii_classes_.size(); ++character) {
    const auto above = std::ranges::upper_bound(class_begins_, character);
    ascii_classes_[character] = static_cast<Class>(above - class_begins_.begin() - 1);
  }
}

GrammarStates::Class GrammarStates::class_of(uint32_t character) const {
  if (character < ascii_classes_.size()) return ascii_classes_[character];
  const auto above = std::ranges::upper_bound(class_begins_, character);
  return static_cast<Class>(above - class_begins_.begin() - 1);
}

bool GrammarStates::spend(int64_t n) {
  work_ += n;
  return !is_exhausted();
}

GrammarStates::Node GrammarStates::push(const Element* element, Node below) {
  const auto [known, is_new] =
      node_ids_.try_emplace(NodeData{element, below}, static_cast<Node>(nodes_.size()));
  if (is_new) nodes_.push_back({element, below});
  return known->second;
}

GrammarStates::Node GrammarStates::behind(const Element* end, Node below) {
  return is_end(*end) ? below : push(end, below);
}

// Follows references to rules until a character, a token or the end of the text is on top.
const std::vector<GrammarStates::Node>& GrammarStates::places_at(Node node) {
  const auto [known, is_new] = places_.try_emplace(node);
  if (!is_new) return known->second;
  std::vector<Node>& found = known->second;
  std::vector<Node> open{node};
  std::unordered_set<Node> seen{node};
  while (!open.empty() && spend(kNewNode)) {
    const Node at = open.back();
    open.pop_back();
    const NodeData data = nodes_[at];
    if (at == kBottom || data.top->type != LLAMA_GRETYPE_RULE_REF) {
      found.push_back(at);
      continue;
    }
    const Node below = behind(data.top + 1, data.below);
    const Element* alternative = rules_.rules[data.top->value].data();
    for (;;) {
      const Node next = behind(alternative, below);
      if (seen.insert(next).second) open.push_back(next);
      while (!is_end(*alternative)) ++alternative;
      if (alternative->type == LLAMA_GRETYPE_END) break;
      ++alternative;
    }
  }
  return found;
}

GrammarStates::State GrammarStates::state_of(std::vector<Node> nodes) {
  if (!spend(std::ssize(nodes))) return kDead;
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const auto [known, is_new] = state_ids_.try_emplace(nodes, static_cast<State>(states_.size()));
  if (is_new) {
    const bool names_tokens = std::ranges::any_of(
        nodes, [&](Node node) { return node != kBottom && is_token(*nodes_[node].top); });
    states_.push_back({.nodes = std::move(nodes), .next = {}, .names_tokens = names_tokens});
  }
  return known->second;
}

GrammarStates::State GrammarStates::after_class(State state, Class character_class) {
  if (state == kDead) return kDead;
  std::vector<State>& next = states_[state].next;
  if (next.empty()) {
    if (!spend(std::ssize(class_begins_))) return kDead;
    next.assign(class_begins_.size(), kUnknown);
  }
  if (next[character_class] != kUnknown) return next[character_class];
  const uint32_t character = class_begins_[character_class];
  std::vector<Node> all;
  for (const Node node : states_[state].nodes) {
    if (!spend(1)) return kDead;
    const NodeData data = nodes_[node];
    if (node == kBottom || is_token(*data.top)) continue;
    const Element* end = behind_match(data.top, character);
    if (end == nullptr) continue;
    const auto& places = places_at(behind(end, data.below));
    if (!spend(std::ssize(places))) return kDead;
    all.insert(all.end(), places.begin(), places.end());
  }
  const State after = state_of(std::move(all));
  states_[state].next[character_class] = after;
  return after;
}

GrammarStates::State GrammarStates::after_character(State state, uint32_t character) {
  return after_class(state, class_of(character));
}

GrammarStates::State GrammarStates::after_token(State state, TokenId token) {
  std::vector<Node> all;
  for (const Node node : states_[state].nodes) {
    const NodeData data = nodes_[node];
    if (node == kBottom || !is_token(*data.top) || !matches(*data.top, token)) continue;
    const auto& places = places_at(behind(data.top + 1, data.below));
    if (!spend(std::ssize(places))) return kDead;
    all.insert(all.end(), places.begin(), places.end());
  }
  return state_of(std::move(all));
}

GrammarStates::State GrammarStates::either(State a, State b) {
  std::vector<Node> all = states_[a].nodes;
  all.insert(all.end(), states_[b].nodes.begin(), states_[b].nodes.end());
  return state_of(std::move(all));
}

bool GrammarStates::may_end(State state) const {
  const std::vector<Node>& nodes = states_[state].nodes;
  return !nodes.empty() && nodes.front() == kBottom;
}

bool GrammarStates::may_follow(State state, uint32_t first, uint32_t last) {
  for (Class c = class_of(first); c <= class_of(last); ++c) {
    if (after_class(state, c) != kDead) return true;
  }
  return false;
}

std::optional<uint32_t> GrammarStates::forced_character(State state) const {
  std::optional<uint32_t> forced;
  for (const Node node : states_[state].nodes) {
    if (node == kBottom) return std::nullopt;
    const Element* next = nodes_[node].top;
    const bool is_one = next->type == LLAMA_GRETYPE_CHAR && next[1].type != LLAMA_GRETYPE_CHAR_ALT &&
                        next[1].type != LLAMA_GRETYPE_CHAR_RNG_UPPER;
    if (!is_one || forced.value_or(next->value) != next->value) return std::nullopt;
    forced = next->value;
  }
  return forced;
}

}  // namespace forerun
