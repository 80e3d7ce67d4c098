#include "support/failing_device.h"

#include <ggml-backend.h>

namespace {

int fail_at = 0;
int n_passes = 0;

}  // namespace

void forerun::test::fail_at_pass(int n) {
  fail_at = n;
  n_passes = 0;
}

// The linker puts the first in the place of ggml's function, which is then the second (--wrap).
extern "C" {
ggml_status __real_ggml_backend_graph_compute(ggml_backend_t backend, ggml_cgraph* graph);
ggml_status __wrap_ggml_backend_graph_compute(ggml_backend_t backend, ggml_cgraph* graph) {
  if (fail_at > 0 && ++n_passes >= fail_at) return GGML_STATUS_FAILED;
  return __real_ggml_backend_graph_compute(backend, graph);
}
}
