#include "core/cpu_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace forerun {
namespace {

#ifdef __linux__

// Read once, before anything is pinned.
const cpu_set_t& initial_affinity() {
  static const cpu_set_t mask = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    // More CPUs than the mask can name: none is named, and nothing will be pinned.
    if (sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
    return set;
  }();
  return mask;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &initial_affinity())) cpus.push_back(cpu);
  }
  return cpus;
}

#else

std::vector<int> allowed_cpus() {
  std::vector<int> cpus(std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < cpus.size(); ++i) cpus[i] = static_cast<int>(i);
  return cpus;
}

#endif

// Names the physical core of a CPU; CPUs of one core share the name.
std::string core_name(int cpu) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  std::string siblings;
  if (!std::getline(file, siblings) || siblings.empty()) return fmt::format("cpu{}", cpu);
  return siblings;
}

}  // namespace

CpuTopology cpu_topology() {
  CpuTopology topology;
  std::vector<int> hyper_threads;
  std::set<std::string> cores;
  for (const int cpu : allowed_cpus()) {
    (cores.insert(core_name(cpu)).second ? topology.cpus : hyper_threads).push_back(cpu);
  }
  const bool known = !topology.cpus.empty();
  topology.n_cores = known ? static_cast<int>(topology.cpus.size())
                           : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  topology.cpus.insert(topology.cpus.end(), hyper_threads.begin(), hyper_threads.end());
  return topology;
}

void pin_current_thread([[maybe_unused]] int cpu) {
#ifdef __linux__
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
#endif
}

void unpin_current_thread() {
#ifdef __linux__
  if (CPU_COUNT(&initial_affinity()) > 0) sched_setaffinity(0, sizeof(cpu_set_t), &initial_affinity());
#endif
}

}  // namespace forerun
