// llama-server's own /completion.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"
#include "serve/protocol/answer_fields.h"
#include "serve/protocol/prompt_field.h"

namespace forerun {

// Both throw Error where the request makes no sense.
void answer_llama_prompts(const std::shared_ptr<Exchange>& exchange, const ModelContext& model,
                          const AnswerFields& fields, const PromptField& prompts);
void answer_llama_completion(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);

}  // namespace forerun
