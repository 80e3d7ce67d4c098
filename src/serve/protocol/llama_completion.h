// llama-server's own /completion.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"

namespace forerun {

// Throws Error where the request makes no sense.
void answer_llama_completion(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);

}  // namespace forerun
