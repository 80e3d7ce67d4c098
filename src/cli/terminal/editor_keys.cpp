#include "cli/terminal/editor_keys.h"

#include <unistd.h>

#include <cwchar>
#include <cwctype>
#include <string>
#include <string_view>

#include "cli/terminal/interrupt.h"
#include "text/graphemes.h"

namespace forerun {
namespace {

constexpr char kEndOfTransmission = 4;  // Ctrl-D
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

// One character of standard input. libedit's own reader goes on after a signal; this
// one gives the line up. 1: a character, 0: the end, -1: interrupted.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state{};
  for (;;) {
    if (!InterruptGuard::wait_for_input(STDIN_FILENO)) return -1;
    char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n <= 0) return static_cast<int>(n);
    // A Ctrl-D that was typed before there was an editor, and the terminal therefore kept
    // lines together, arrives as a NUL.
    if (byte == '\0') byte = kEndOfTransmission;
    const size_t length = std::mbrtowc(character, &byte, 1, &state);
    if (length == static_cast<size_t>(-2)) continue;  // not complete yet
    if (length != static_cast<size_t>(-1)) return 1;
    state = {};  // no character of this locale: leave it out
  }
}

// The line, and where the cursor is in it.
struct Line {
  explicit Line(EditLine* edit) {
    const LineInfoW* info = el_wline(edit);
    text = {info->buffer, static_cast<size_t>(info->lastchar - info->buffer)};
    cursor = static_cast<size_t>(info->cursor - info->buffer);
  }
  // Code points of the grapheme before and behind the cursor; 0: there is none.
  int n_before() const {
    return cursor == 0 ? 0 : static_cast<int>(cursor - grapheme_begin(text, cursor));
  }
  int n_behind() const {
    return cursor == text.size() ? 0 : static_cast<int>(grapheme_end(text, cursor) - cursor);
  }

  std::wstring_view text;
  size_t cursor;
};

using Key = unsigned char (*)(EditLine*, int);

unsigned char delete_before(EditLine* edit, int) {
  const int n = Line(edit).n_before();
  if (n == 0) return CC_ERROR;
  el_deletestr(edit, n);
  return CC_REFRESH;
}

unsigned char delete_behind(EditLine* edit, int) {
  const int n = Line(edit).n_behind();
  if (n == 0) return CC_ERROR;
  el_cursor(edit, n);
  el_deletestr(edit, n);
  return CC_REFRESH;
}

unsigned char delete_behind_or_end(EditLine* edit, int key) {
  return Line(edit).text.empty() ? CC_EOF : delete_behind(edit, key);
}

unsigned char move_left(EditLine* edit, int) {
  const int n = Line(edit).n_before();
  if (n == 0) return CC_ERROR;
  el_cursor(edit, -n);
  return CC_CURSOR;
}

unsigned char move_right(EditLine* edit, int) {
  const int n = Line(edit).n_behind();
  if (n == 0) return CC_ERROR;
  el_cursor(edit, n);
  return CC_CURSOR;
}

// Behind the mark that a paste begins with: all up to the mark that ends it.
unsigned char paste(EditLine* edit, int) {
  std::wstring pasted;
  while (!pasted.ends_with(kPasteEnd)) {
    wchar_t character = 0;
    if (el_wgetc(edit, &character) != 1) return CC_EOF;
    pasted += character;
  }
  pasted.resize(pasted.size() - kPasteEnd.size());
  std::wstring text;
  for (wchar_t c : pasted) {
    if (c == L'\r') c = L'\n';  // what the key sends for a line's end
    if (c == L'\n' || c == L'\t' || std::iswcntrl(static_cast<wint_t>(c)) == 0) text += c;
  }
  if (text.empty()) return CC_NORM;
  return el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

void add(EditLine* edit, const char* name, const char* help, Key run,
         std::initializer_list<const char*> keys) {
  el_set(edit, EL_ADDFN, name, help, run);
  for (const char* key : keys) el_set(edit, EL_BIND, key, name, nullptr);
}

}  // namespace

void set_editor_keys(EditLine* edit) {
  el_set(edit, EL_GETCFN, read_character);
  el_set(edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  add(edit, "delete-before", "Delete what is before the cursor", delete_before, {"^?", "^H"});
  add(edit, "delete-behind", "Delete what is behind the cursor", delete_behind, {"\\e[3~"});
  add(edit, "delete-or-end", "The same, or end an empty line", delete_behind_or_end, {"^D"});
  add(edit, "move-left", "Go left", move_left, {"^B", "\\e[D", "\\eOD"});
  add(edit, "move-right", "Go right", move_right, {"^F", "\\e[C", "\\eOC"});
  add(edit, "paste", "Insert what is pasted", paste, {"\\e[200~"});
}

}  // namespace forerun
