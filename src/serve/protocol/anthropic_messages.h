// Anthropic's /v1/messages, and /v1/messages/count_tokens.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"

namespace forerun {

HttpResponse anthropic_error(int status, const std::string& message);

// Both answer errors in that protocol's form.
void answer_anthropic_messages(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);
void count_anthropic_tokens(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);

}  // namespace forerun
