#include "grammar/grammar_place.h"

#include <algorithm>

namespace forerun {
namespace {

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

GrammarPlace with_first_byte(GrammarPlace place, uint8_t byte) {
  if (byte >= 0xF0) {
    return {.state = place.state, .n_missing = 3, .value = byte & 0x07u, .least = 0x10000};
  }
  if (byte >= 0xE0) return {.state = place.state, .n_missing = 2, .value = byte & 0x0Fu, .least = 0x800};
  return {.state = place.state, .n_missing = 1, .value = byte & 0x1Fu, .least = 0x80};
}

}  // namespace

GrammarPlace after_byte(GrammarStates& states, GrammarPlace place, uint8_t byte) {
  const bool goes_on = byte >> 6 == 2;
  if (goes_on != (place.n_missing > 0) || byte == 0) return {};
  if (byte < 0x80) return {.state = states.after_character(place.state, byte)};
  if (goes_on) {
    place.value = place.value << 6 | (byte & 0x3Fu);
    --place.n_missing;
  } else {
    place = with_first_byte(place, byte);
  }
  const int n_bits = 6 * place.n_missing;
  const uint32_t last = ((place.value + 1) << n_bits) - 1;
  if (last < place.least) return {};  // a longer form than the character has
  if (place.n_missing == 0) return {.state = states.after_character(place.state, place.value)};
  const bool may_follow =
      states.may_follow(place.state, std::max(place.least, place.value << n_bits), last);
  return may_follow ? place : GrammarPlace{};
}

GrammarPlace after_text(GrammarStates& states, GrammarPlace place, std::string_view text) {
  for (const char byte : text) {
    if (place.is_dead()) break;
    place = after_byte(states, place, static_cast<uint8_t>(byte));
  }
  return place;
}

std::string forced_text(GrammarStates& states, GrammarPlace place, int most_characters) {
  std::string text;
  if (place.n_missing > 0) return text;
  for (int i = 0; i < most_characters; ++i) {
    const auto character = states.forced_character(place.state);
    if (!character) break;
    add_utf8(text, *character);
    place.state = states.after_character(place.state, *character);
  }
  return text;
}

}  // namespace forerun
