// One turn of a conversation.
#pragma once

#include <string>

namespace forerun {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", or what else the template knows
  std::string content;
};

}  // namespace forerun
