// How typed lines become one message: what `\`, """ and / mean.
//
//   a line that ends with \    goes on with the next
//   """ ... """                all between is the text, as it is
//   /word ...                  a command
//   //...                      the text /...
//
// A pasted text, and one that is taken from the history, is a "line" with line ends in it:
// they are part of the message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace forerun {

struct Input {
  std::string text;         // without what only marks it; of a command without the slash
  bool is_command = false;  // text in """ is none
  std::string source;       // what would have to be typed, as one "line", to say it again
};

class MessageInput {
 public:
  // The message, once this line completes it.
  std::optional<Input> push(std::string_view line);

  // There are no more lines: the message so far; nullopt: there is none.
  std::optional<Input> finish();

  // Whether a message has begun.
  bool is_open() const { return is_block_ || is_continued_; }

 private:
  Input take();

  std::string lines_;  // so far, without the marks
  bool is_block_ = false;
  bool is_continued_ = false;
};

}  // namespace forerun
