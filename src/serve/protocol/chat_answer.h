// The answer to a conversation, whatever protocol it was asked in.
#pragma once

#include <functional>
#include <memory>

#include "serve/answer/answer_writer.h"
#include "serve/http/exchange.h"
#include "serve/protocol/chat_prompt.h"

namespace forerun {

using MakeChatWriter =
    std::function<std::unique_ptr<AnswerWriter>(PreparedChat chat, const AnswerFields& fields)>;

// `request` is as OpenAI's clients have it. Throws Error where it makes no sense.
void answer_chat(const std::shared_ptr<Exchange>& exchange, const ModelContext& model,
                 const Json& request, const MakeChatWriter& make_writer);

}  // namespace forerun
