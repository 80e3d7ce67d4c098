// Reads messages from a person: editing and history on a terminal, plain lines else.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/terminal/message_input.h"

namespace forerun {

// While one lives on a terminal, what is typed is not shown until it is read: it is the
// beginning of the next line then.
class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // nullopt: the end of the input (Ctrl-D). A message given up with Ctrl-C comes back
  // as an empty one.
  std::optional<Input> read();

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;  // nullptr: standard input is none
  MessageInput input_;
};

}  // namespace forerun
