#include "model/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace forerun {
namespace {

constexpr size_t kUnknown = std::numeric_limits<size_t>::max();

std::optional<size_t> meminfo_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  size_t value = 0;
  while (file >> key >> value) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return value * 1024;
  }
  return std::nullopt;
}

std::optional<size_t> read_number(const char* path) {
  std::ifstream file(path);
  size_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // no such file, or the word "max"
}

// Bytes of the group that are page cache, which the kernel gives up on demand.
size_t cgroup_page_cache() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string key;
  size_t value = 0;
  while (file >> key >> value) {
    if (key == "file") return value;
  }
  return 0;
}

std::optional<size_t> cgroup_available() {
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  const size_t taken = *used - std::min(*used, cgroup_page_cache());
  return *limit > taken ? *limit - taken : 0;
}

}  // namespace

size_t available_host_memory() {
  return std::min(meminfo_available().value_or(kUnknown), cgroup_available().value_or(kUnknown));
}

}  // namespace forerun
