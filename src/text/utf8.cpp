#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace forerun {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Shape {
  kCharacter,   // a valid character
  kInvalid,     // bytes that no character starts with
  kIncomplete,  // the text ends inside what may still become a character
};

struct Prefix {
  Shape shape;
  size_t n_bytes;  // of the character, or of the longest prefix of one
};

// What `text`, not empty, begins with. (Unicode, table 3-7: only the second byte's
// range depends on the first.)
Prefix classify(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {Shape::kCharacter, 1};

  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {Shape::kInvalid, 1};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Shape::kIncomplete, i};
    if (byte(i) < low || byte(i) > high) return {Shape::kInvalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Shape::kCharacter, length};
}

// Number of leading bytes of `text` known to be ASCII, in steps of eight.
size_t ascii_prefix(std::string_view text) {
  size_t n = 0;
  for (; n + 8 <= text.size(); n += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + n, sizeof(word));
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return n;
}

}  // namespace

std::optional<size_t> first_invalid_byte(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    pos += ascii_prefix(text.substr(pos));
    // Past the ASCII run, go character by character to the end of this word.
    for (const size_t stop = pos + 8; pos < stop && pos < text.size();) {
      const Prefix prefix = classify(text.substr(pos));
      if (prefix.shape != Shape::kCharacter) return pos;
      pos += prefix.n_bytes;
    }
  }
  return std::nullopt;
}

bool is_valid_utf8(std::string_view text) {
  return !first_invalid_byte(text).has_value();
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_.append(bytes);
  std::string out;
  size_t pos = 0;
  while (pos < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(pos);
    const Prefix prefix = classify(rest);
    if (prefix.shape == Shape::kIncomplete) break;
    out.append(prefix.shape == Shape::kCharacter ? rest.substr(0, prefix.n_bytes) : kReplacement);
    pos += prefix.n_bytes;
  }
  pending_.erase(0, pos);
  return out;
}

std::string Utf8Stream::flush() {
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return std::string(incomplete ? kReplacement : "");
}

}  // namespace forerun
