// /tokenize and /detokenize.
#pragma once

#include "serve/http/http_message.h"
#include "serve/model_context.h"

namespace forerun {

// Each throws Error where the request makes no sense.
HttpResponse tokenize(const HttpRequest& request, const ModelContext& model);
HttpResponse detokenize(const HttpRequest& request, const ModelContext& model);

}  // namespace forerun
