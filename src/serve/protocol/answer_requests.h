// The requests to an engine that one HTTP request becomes.
#pragma once

#include <forerun/request.h>

#include <vector>

#include "serve/model_context.h"
#include "serve/protocol/answer_fields.h"

namespace forerun {

// One for each prompt and choice, the choices of a prompt next to each other. A seed counts up with the
// choice, so that they differ. Throws Error: a prompt that does not fit, a method that there is not.
std::vector<Request> answer_requests(const ModelContext& model,
                                     const std::vector<std::vector<TokenId>>& prompts,
                                     const AnswerFields& fields);

}  // namespace forerun
