#include "support/failing_device.h"

#include <span>

#include "core/error.h"
#include "model/cpu/worker_pool.h"

namespace {

int fail_at = 0;
int n_passes = 0;

}  // namespace

void forerun::test::fail_at_pass(int n) {
  fail_at = n;
  n_passes = 0;
}

// The linker puts the first in the place of WorkerPool::run(), which is then the second (--wrap).
extern "C" {
using Steps = std::span<const forerun::CpuStep>;
void __real__ZN7forerun10WorkerPool3runESt4spanIKNS_7CpuStepELm18446744073709551615EE(
    forerun::WorkerPool* pool, Steps steps);
void __wrap__ZN7forerun10WorkerPool3runESt4spanIKNS_7CpuStepELm18446744073709551615EE(
    forerun::WorkerPool* pool, Steps steps) {
  // What threads share besides passes makes no tensor.
  const bool is_pass = steps.empty() || steps.front().dst != nullptr;
  if (is_pass && fail_at > 0 && ++n_passes >= fail_at) {
    forerun::fail(forerun::ErrorCode::kUnsupported, "cpu failed to compute: the test wants it");
  }
  __real__ZN7forerun10WorkerPool3runESt4spanIKNS_7CpuStepELm18446744073709551615EE(pool, steps);
}
}
