// Where texts may stand in a grammar: an automaton that is built as far as they go, so that a place seen
// before costs a look into a table.
//
// A text stands at several places of a grammar at once, each with what has to follow it: a stack. Stacks
// share what lies below, as nodes that are there once each, and so however many ways lead to a place, it
// counts once. All that tells characters apart in a grammar are the borders of its ranges; between two
// of them they are one class.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/ids.h"
#include "grammar/grammar_rules.h"

namespace forerun {

class GrammarStates {
 public:
  using State = uint32_t;
  static constexpr State kDead = 0;  // nothing may follow, and the text may not end

  explicit GrammarStates(GrammarRules rules);

  State start() const { return start_; }
  State after_character(State state, uint32_t character);
  // By the elements that ask for a token itself.
  State after_token(State state, TokenId token);
  // Where a text stands that stands at one or at the other.
  State either(State a, State b);
  bool names_tokens(State state) const { return states_[state].names_tokens; }
  bool may_end(State state) const;
  // Whether one of these characters may follow.
  bool may_follow(State state, uint32_t first, uint32_t last);
  // nullopt: there are several, or the text may end.
  std::optional<uint32_t> forced_character(State state) const;

  // The grammar is so ambiguous that it takes too long to follow. New states are dead from there on.
  bool is_exhausted() const { return work_ > kMostWork; }

 private:
  using Element = llama_grammar_element;
  using Node = uint32_t;  // a stack
  using Class = uint32_t;
  static constexpr Node kBottom = 0;
  static constexpr State kUnknown = ~State{0};
  // For all of a text, in nodes that are looked at: some tenths of a second, and 100 MB. Grammars in use
  // need some thousands.
  static constexpr int64_t kMostWork = int64_t{1} << 24;
  static constexpr int64_t kNewNode = 16;  // what one costs

  struct NodeData {
    const Element* top;
    Node below;
    bool operator==(const NodeData&) const = default;
  };
  struct StateData {
    std::vector<Node> nodes;  // that end in a character or a token, or kBottom; sorted
    std::vector<State> next;  // by class; empty: none is known
    bool names_tokens = false;
  };
  struct Hash {
    size_t operator()(const NodeData& node) const;
    size_t operator()(const std::vector<Node>& nodes) const;
  };

  void find_classes();
  Class class_of(uint32_t character) const;
  Node push(const Element* element, Node below);
  // What follows an element, above what lies below it.
  Node behind(const Element* end, Node below);
  const std::vector<Node>& places_at(Node node);
  State state_of(std::vector<Node> nodes);
  State after_class(State state, Class character_class);
  bool spend(int64_t n);

  GrammarRules rules_;
  std::vector<uint32_t> class_begins_;
  std::array<Class, 128> ascii_classes_{};
  std::vector<NodeData> nodes_;
  std::unordered_map<NodeData, Node, Hash> node_ids_;
  std::unordered_map<Node, std::vector<Node>> places_;
  std::vector<StateData> states_;
  std::unordered_map<std::vector<Node>, State, Hash> state_ids_;
  State start_ = kDead;
  int64_t work_ = 0;
};

}  // namespace forerun
