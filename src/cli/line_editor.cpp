#include "cli/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <cstdio>
#include <cwchar>
#include <iostream>

#include "cli/interrupt.h"

namespace forerun {
namespace {

constexpr int kHistoryLines = 1000;
constexpr char kEndOfTransmission = 4;  // Ctrl-D

// One character of standard input. libedit's own reader goes on after a signal; this
// one gives the line up. 1: a character, 0: the end, -1: interrupted.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state{};
  for (;;) {
    if (!InterruptGuard::wait_for_input(STDIN_FILENO)) return -1;
    char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n <= 0) return static_cast<int>(n);
    // A Ctrl-D that was typed while no line was being read, and the terminal therefore
    // kept lines together, arrives as a NUL.
    if (byte == '\0') byte = kEndOfTransmission;
    const size_t length = std::mbrtowc(character, &byte, 1, &state);
    if (length == static_cast<size_t>(-2)) continue;  // not complete yet
    if (length != static_cast<size_t>(-1)) return 1;
    state = {};  // no character of this locale: leave it out
  }
}

}  // namespace

struct LineEditor::Terminal {
  std::string prompt;
  EditLine* edit = nullptr;
  History* history = nullptr;

  static char* prompt_of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<Terminal*>(self)->prompt.data();
  }
};

LineEditor::LineEditor(std::string prompt) {
  if (::isatty(STDIN_FILENO) == 0) return;
  terminal_ = std::make_unique<Terminal>();
  terminal_->prompt = std::move(prompt);
  terminal_->edit = el_init("forerun", stdin, stdout, stderr);
  terminal_->history = history_init();
  HistEvent event;
  history(terminal_->history, &event, H_SETSIZE, kHistoryLines);
  el_set(terminal_->edit, EL_CLIENTDATA, terminal_.get());
  el_set(terminal_->edit, EL_PROMPT, &Terminal::prompt_of);
  el_set(terminal_->edit, EL_EDITOR, "emacs");
  el_set(terminal_->edit, EL_HIST, history, terminal_->history);
  el_set(terminal_->edit, EL_GETCFN, read_character);
  el_set(terminal_->edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (!terminal_) return;
  history_end(terminal_->history);
  el_end(terminal_->edit);
}

std::optional<std::string> LineEditor::read() {
  if (!terminal_) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  int n_bytes = 0;
  const char* bytes = el_gets(terminal_->edit, &n_bytes);
  if (bytes == nullptr || n_bytes <= 0) {
    if (!InterruptGuard::take()) return std::nullopt;
    el_reset(terminal_->edit);
    std::printf("\n");
    return "";
  }
  std::string line(bytes, static_cast<size_t>(n_bytes));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  if (!line.empty()) {
    HistEvent event;
    history(terminal_->history, &event, H_ENTER, line.c_str());
  }
  return line;
}

}  // namespace forerun
