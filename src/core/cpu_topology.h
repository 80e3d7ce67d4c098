// The CPUs this process may run on, physical cores first.
#pragma once

#include <vector>

namespace forerun {

struct CpuTopology {
  // Logical CPUs allowed by the affinity mask: first one per physical core, then
  // their hyper-threads. Empty where the system does not say.
  std::vector<int> cpus;
  int n_cores = 1;  // how many of them are first of their core
};

CpuTopology cpu_topology();

// Binds the current thread to a CPU. Where the system does not allow it, it runs where it may.
void pin_current_thread(int cpu);
// Lets the current thread run on every CPU the process could use at its start,
// undoing a pinning it inherited. Does nothing where the system does not allow it.
void unpin_current_thread();

}  // namespace forerun
