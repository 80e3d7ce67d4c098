// OpenAI's /v1/chat/completions, and what a conversation's prompt is.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"

namespace forerun {

// Each throws Error where the request makes no sense.
void answer_openai_chat(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);
HttpResponse count_chat_tokens(const HttpRequest& request, const ModelContext& model);
HttpResponse apply_template(const HttpRequest& request, const ModelContext& model);

}  // namespace forerun
