#include "model/graph_builder.h"

namespace forerun {

ggml_tensor* GraphBuilder::head(ggml_tensor* states) {
  ggml_tensor* logits = head_product(states);
  if (const float cap = config().logit_softcap; cap > 0.0f) {
    logits = ggml_scale(context(), logits, 1.0f / cap);
    logits = ggml_scale(context(), ggml_tanh(context(), logits), cap);
  }
  return logits;
}

}  // namespace forerun
