// llama-server's /infill: the middle of a text whose beginning and end are known.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/model_context.h"

namespace forerun {

// Throws Error where the request makes no sense, or the model cannot.
void answer_infill(const std::shared_ptr<Exchange>& exchange, const ModelContext& model);

}  // namespace forerun
