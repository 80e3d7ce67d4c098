#include "text/graphemes.h"

#include <algorithm>
#include <array>
#include <cwchar>
#include <cwctype>

#include "core/check.h"

namespace forerun {
namespace {

constexpr wchar_t kJoiner = 0x200D;

struct Range {
  wchar_t first, last;
};

bool is_in(wchar_t c, Range range) {
  return c >= range.first && c <= range.last;
}

bool is_control(wchar_t c) {
  return c == 0 || std::iswcntrl(static_cast<wint_t>(c)) != 0;
}

bool is_regional_indicator(wchar_t c) {
  return is_in(c, {0x1F1E6, 0x1F1FF});
}

// Belongs to what is before it.
bool is_extending(wchar_t c) {
  constexpr std::array<Range, 4> kAlways = {{
      {0xFE00, 0xFE0F},    // variation selectors
      {0x1F3FB, 0x1F3FF},  // skin tones, which have a width where they stand alone
      {0xE0020, 0xE007F},  // tags, as in the flag of Wales
      {0xE0100, 0xE01EF},  // more variation selectors
  }};
  return c == kJoiner || ::wcwidth(c) == 0 ||
         std::any_of(kAlways.begin(), kAlways.end(), [&](Range range) { return is_in(c, range); });
}

// What a joiner can join: the blocks in which Unicode's Extended_Pictographic characters are.
bool is_picture(wchar_t c) {
  constexpr std::array<Range, 11> kPictures = {{
      {0xA9, 0xA9},
      {0xAE, 0xAE},
      {0x203C, 0x203C},
      {0x2049, 0x2049},
      {0x2122, 0x2139},
      {0x2190, 0x23FF},
      {0x24C2, 0x24C2},
      {0x25A0, 0x27BF},
      {0x2934, 0x2BFF},
      {0x3030, 0x3299},
      {0x1F000, 0x1FAFF},
  }};
  return !is_regional_indicator(c) && !is_extending(c) &&
         std::any_of(kPictures.begin(), kPictures.end(), [&](Range range) { return is_in(c, range); });
}

// Whether `text` ends with a picture, what belongs to it, and a joiner.
bool ends_with_joined_picture(std::wstring_view text) {
  if (text.empty() || text.back() != kJoiner) return false;
  while (!text.empty() && is_extending(text.back())) text.remove_suffix(1);
  return !text.empty() && is_picture(text.back());
}

// Whether `text` ends with the first half of a flag.
bool ends_with_half_flag(std::wstring_view text) {
  size_t n = 0;
  while (n < text.size() && is_regional_indicator(text[text.size() - 1 - n])) ++n;
  return n % 2 == 1;
}

bool is_boundary(std::wstring_view text, size_t position) {
  if (position == 0 || position == text.size()) return true;
  const std::wstring_view before = text.substr(0, position);
  const wchar_t next = text[position];
  if (is_control(before.back()) || is_control(next)) return true;
  if (is_extending(next)) return false;
  if (is_regional_indicator(next)) return !ends_with_half_flag(before);
  return !(is_picture(next) && ends_with_joined_picture(before));
}

}  // namespace

size_t grapheme_begin(std::wstring_view text, size_t end) {
  CHECK(end > 0 && end <= text.size());
  size_t begin = end - 1;
  while (!is_boundary(text, begin)) --begin;
  return begin;
}

size_t grapheme_end(std::wstring_view text, size_t begin) {
  CHECK(begin < text.size());
  size_t end = begin + 1;
  while (!is_boundary(text, end)) ++end;
  return end;
}

}  // namespace forerun
