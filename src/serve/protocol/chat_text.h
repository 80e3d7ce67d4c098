// The text of one choice of a chat, read as it comes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/chat_format.h"

namespace forerun {

class ChatText {
 public:
  // Without a parser all of it is content.
  explicit ChatText(std::shared_ptr<const ChatParser> parser) : parser_(std::move(parser)) {}

  // true, once: nothing was said of it yet.
  bool begin() { return !std::exchange(has_begun_, true); }

  // The text grew: what that means.
  std::vector<ChatDelta> add(std::string_view more);
  // This is all of it: what is left to be said.
  std::vector<ChatDelta> finish(const std::string& text);

  const ChatAnswer& answer() const { return answer_; }  // so far

 private:
  std::vector<ChatDelta> read(bool is_partial);

  std::shared_ptr<const ChatParser> parser_;
  bool has_begun_ = false;
  std::string text_;
  ChatAnswer answer_;
};

}  // namespace forerun
