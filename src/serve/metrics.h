// /metrics, for Prometheus.
#pragma once

#include "serve/http/http_message.h"
#include "serve/model_context.h"

namespace forerun {

HttpResponse show_metrics(const ModelContext& model);

}  // namespace forerun
