#include "model/host_memory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

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

std::optional<size_t> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  size_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // no such file, or the word "max"
}

// Where a version of control groups is, and what it calls things.
struct GroupFiles {
  std::string_view of_line;  // in /proc/self/cgroup, before the path of our group
  const char* root;
  const char* limit;
  const char* used;
  std::string_view page_cache;  // in memory.stat, with what is in groups below
};
constexpr std::array kVersions = {
    GroupFiles{"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "file"},
    GroupFiles{":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
               "total_cache"},
};

// Bytes of the group that are page cache, which the kernel gives up on demand.
size_t page_cache_of(const std::filesystem::path& group, const GroupFiles& files) {
  std::ifstream file(group / "memory.stat");
  std::string key;
  size_t value = 0;
  while (file >> key >> value) {
    if (key == files.page_cache) return value;
  }
  return 0;
}

size_t available_to(const std::filesystem::path& group, const GroupFiles& files) {
  const auto limit = read_number(group / files.limit);
  const auto used = read_number(group / files.used);
  if (!limit || !used) return kUnknown;  // it has no limit, or is not seen from here
  const size_t taken = *used - std::min(*used, page_cache_of(group, files));
  return *limit > taken ? *limit - taken : 0;
}

// The least of our group and those that it is in.
size_t available_to_groups(const GroupFiles& files) {
  const std::filesystem::path root = files.root;
  size_t available = available_to(root, files);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t at = line.find(files.of_line);
    if (at == std::string::npos) continue;
    const std::filesystem::path path = line.substr(at + files.of_line.size());
    std::filesystem::path group = root;
    for (const auto& name : path.relative_path()) {
      group /= name;
      available = std::min(available, available_to(group, files));
    }
  }
  return available;
}

}  // namespace

size_t available_host_memory() {
  size_t available = meminfo_available().value_or(kUnknown);
  for (const GroupFiles& files : kVersions) available = std::min(available, available_to_groups(files));
  return available;
}

}  // namespace forerun
