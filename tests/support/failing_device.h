// Lets passes of the model fail as those of a device that breaks do.
//
// A test that links forerun_failing_device computes through this instead of WorkerPool::run().
#pragma once

namespace forerun::test {

// The n-th pass from now on fails, counted from 1, and so do those after it until the next call;
// 0: none.
void fail_at_pass(int n);

}  // namespace forerun::test
