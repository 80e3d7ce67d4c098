#include "cli/terminal/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/terminal/editor_keys.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/mode.h"

namespace forerun {
namespace {

constexpr int kHistoryMessages = 1000;
constexpr const char* kPrompt = "> ";
constexpr const char* kPromptWithin = ". ";  // of a message that goes on

// The terminal that is written to; nullptr: none.
FILE* screen() {
  if (::isatty(STDOUT_FILENO) != 0) return stdout;
  return ::isatty(STDERR_FILENO) != 0 ? stderr : nullptr;
}

}  // namespace

struct LineEditor::Terminal {
  explicit Terminal(FILE* out)
      : screen(out),
        mode(::fileno(out)),
        edit(el_init("forerun", stdin, out, stderr)),
        history(history_init()) {
    HistEvent event;
    ::history(history, &event, H_SETSIZE, kHistoryMessages);
    el_set(edit, EL_CLIENTDATA, this);
    el_set(edit, EL_PROMPT, &Terminal::prompt_of);
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_HIST, ::history, history);
    // Between lines too the terminal shows nothing by itself, and keeps keys, not lines.
    el_set(edit, EL_SETTY, "-x", "-echo", "-icanon", nullptr);
    set_editor_keys(edit);
  }
  ~Terminal() {
    history_end(history);
    el_end(edit);
  }

  static char* prompt_of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<Terminal*>(self)->prompt.data();
  }

  std::optional<std::string> read_line() {
    int n_bytes = 0;
    const char* bytes = el_gets(edit, &n_bytes);
    if (bytes == nullptr || n_bytes <= 0) return std::nullopt;
    std::string line(bytes, static_cast<size_t>(n_bytes));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    return line;
  }

  void remember(const Input& input) {
    HistEvent event;
    if (!input.source.empty()) ::history(history, &event, H_ENTER, input.source.c_str());
  }

  FILE* screen;
  TerminalMode mode;
  std::string prompt;
  EditLine* edit;
  History* history;
};

LineEditor::LineEditor() {
  FILE* out = screen();
  if (::isatty(STDIN_FILENO) != 0 && out != nullptr) terminal_ = std::make_unique<Terminal>(out);
}

LineEditor::~LineEditor() = default;

std::optional<Input> LineEditor::read() {
  std::optional<Input> input;
  while (!input) {
    std::optional<std::string> line;
    if (terminal_) {
      terminal_->prompt = input_.is_open() ? kPromptWithin : kPrompt;
      line = terminal_->read_line();
      if (!line && InterruptGuard::take()) {
        el_reset(terminal_->edit);
        std::fputc('\n', terminal_->screen);
        input_ = {};
        return Input{};
      }
    } else if (std::string text; std::getline(std::cin, text)) {
      if (text.ends_with('\r')) text.pop_back();
      line = std::move(text);
    }
    input = line ? input_.push(*line) : input_.finish();
    if (!line) {
      if (terminal_ && input) std::fputc('\n', terminal_->screen);
      break;
    }
  }
  if (terminal_ && input) terminal_->remember(*input);
  return input;
}

}  // namespace forerun
