// What a server says of itself: /v1/models, /props, /slots, /metrics.
#pragma once

#include "serve/http/http_message.h"
#include "serve/model_context.h"

namespace forerun {

HttpResponse list_models(const ModelContext& model);
HttpResponse show_props(const ModelContext& model);
HttpResponse show_slots(const ModelContext& model);

}  // namespace forerun
