// The vectors of texts: OpenAI's /v1/embeddings and llama-server's /embedding.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"

namespace forerun {

// Both throw Error where the request makes no sense.
void answer_openai_embeddings(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);
void answer_llama_embeddings(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);

}  // namespace forerun
