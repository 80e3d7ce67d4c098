// Where what a reader takes for one character begins and ends: a letter with its accents, a
// family of four, a flag.
//
// The rules are those of Unicode's annex 29 that matter when typing: marks without a width,
// variation selectors, skin tones and tags belong to what is before them, a joiner joins two
// pictures, and two regional indicators are a flag. Its rules for Indic spacing marks and
// prepended signs are left out. Which marks have no width is asked of the C library: a UTF-8
// LC_CTYPE must be set.
#pragma once

#include <cstddef>
#include <string_view>

namespace forerun {

static_assert(sizeof(wchar_t) == 4, "a wchar_t is a code point");

// Where the grapheme begins that ends at `end`, or reaches over it; `end` must not be 0.
size_t grapheme_begin(std::wstring_view text, size_t end);

// Where the grapheme ends that begins at `begin`, or before it; it must not be the text's end.
size_t grapheme_end(std::wstring_view text, size_t begin);

}  // namespace forerun
