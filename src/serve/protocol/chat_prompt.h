// What a conversation's prompt is, and how its answer is read: for all protocols, which translate what
// they have into OpenAI's.
#pragma once

#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "serve/model_context.h"
#include "serve/protocol/answer_fields.h"

namespace forerun {

struct PreparedChat {
  ChatPrompt prompt;
  std::vector<TokenId> tokens;  // of its text
};

// Of "messages", "tools", "response_format" and the like. Throws Error where they make no sense.
PreparedChat prepare_chat(const Json& request, const ModelContext& model);

// What the prompt says about the answer: stops, a grammar, control tokens that belong to it.
void add_chat_fields(const ChatPrompt& prompt, const Tokenizer& tokenizer, AnswerFields& fields);

}  // namespace forerun
