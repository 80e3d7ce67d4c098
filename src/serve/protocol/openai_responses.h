// OpenAI's /v1/responses.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"

namespace forerun {

// Throws Error where the request makes no sense.
void answer_openai_responses(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);
HttpResponse count_responses_tokens(const HttpRequest& request, const ModelContext& model);

}  // namespace forerun
