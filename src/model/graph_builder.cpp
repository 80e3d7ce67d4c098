#include "model/graph_builder.h"

namespace forerun {

ggml_tensor* GraphBuilder::head(ggml_tensor* states) {
  ggml_tensor* logits = head_product(states);
  const float cap = config().logit_softcap;
  return cap > 0.0f ? soft_cap(logits, cap) : logits;
}

}  // namespace forerun
