#include "text/printable.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace forerun {
namespace {

bool is_control(char32_t c) {
  if (c == '\n' || c == '\t') return false;
  const bool turns_text = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || turns_text;
}

// The first character of a valid, not empty text.
struct Character {
  char32_t code;
  size_t n_bytes;
};
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t n = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  char32_t code = n == 1 ? byte(0) : byte(0) & (0x7F >> n);
  for (size_t i = 1; i < n; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {code, n};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    std::string_view valid = text.substr(0, first_invalid_byte(text).value_or(text.size()));
    text.remove_prefix(valid.size());
    while (!valid.empty()) {
      const Character c = first_character(valid);
      if (!is_control(c.code)) {
        shown += valid.substr(0, c.n_bytes);
      } else if (c.code < 0x80) {
        shown += fmt::format("\\x{:02x}", static_cast<uint32_t>(c.code));
      } else {
        shown += fmt::format("\\u{:04x}", static_cast<uint32_t>(c.code));
      }
      valid.remove_prefix(c.n_bytes);
    }
    if (text.empty()) break;
    shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(1);
  }
  return shown;
}

}  // namespace forerun
