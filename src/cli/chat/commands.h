// What can be typed in a chat beside messages: /help and so on.
#pragma once

#include <string>

#include "cli/chat/session.h"

namespace forerun {

// `text` is the command without its slash. Throws Error if there is no such command or it
// cannot be carried out.
void run_chat_command(ChatSession& session, const std::string& text);

// All commands and marks, a line each.
std::string chat_help();

}  // namespace forerun
