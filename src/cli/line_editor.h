// Reads lines from a person: editing and history on a terminal, plain lines else.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace forerun {

class LineEditor {
 public:
  explicit LineEditor(std::string prompt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // nullopt: the end of the input (Ctrl-D). A line given up with Ctrl-C comes back
  // as an empty one.
  std::optional<std::string> read();

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;  // nullptr: standard input is none
};

}  // namespace forerun
