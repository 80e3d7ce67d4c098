// Where a text stands in a grammar, of characters that may be cut anywhere: tokens are bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_states.h"
#include "text/sorted_pieces.h"

namespace forerun {

struct GrammarPlace {
  GrammarStates::State state = GrammarStates::kDead;
  // Of a character that has only begun:
  int n_missing = 0;   // bytes
  uint32_t value = 0;  // its bits so far
  uint32_t least = 0;  // that a character of its length stands for

  bool is_dead() const { return state == GrammarStates::kDead; }
};

// What begins a character that cannot follow leads nowhere already.
GrammarPlace after_byte(GrammarStates& states, GrammarPlace place, uint8_t byte);
GrammarPlace after_text(GrammarStates& states, GrammarPlace place, std::string_view text);

// Calls allow(token) for every token whose bytes may follow.
template <typename Allow>
void for_each_allowed(GrammarStates& states, GrammarPlace start, const SortedPieces& pieces,
                      const Allow& allow) {
  std::vector<GrammarPlace> path{start};  // behind each byte of a piece, as far as it may go
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t n_shared = pieces.n_shared(i);
    if (n_shared >= path.size()) continue;  // so the byte that is forbidden is one of these
    path.resize(n_shared + 1);
    const std::string_view piece = pieces.piece(i);
    while (path.size() <= piece.size()) {
      const GrammarPlace next =
          after_byte(states, path.back(), static_cast<uint8_t>(piece[path.size() - 1]));
      if (next.is_dead()) break;
      path.push_back(next);
    }
    if (path.size() > piece.size()) allow(pieces.token(i));
  }
}

// The text that must follow, as far as there is only one, up to so many characters.
std::string forced_text(GrammarStates& states, GrammarPlace place, int most_characters);

}  // namespace forerun
