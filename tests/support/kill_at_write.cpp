#include "support/kill_at_write.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

std::string folder;  // empty: nothing is counted
int kill_at = 0;
std::atomic<int> n_calls = 0;

// What the call stands in for.
template <typename Function>
Function original(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_under_folder(const std::string& path) {
  return !folder.empty() && path.starts_with(folder);
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), path, sizeof(path));
  return n < 0 ? std::string() : std::string(path, static_cast<size_t>(n));
}

// Whether this call is the last one.
bool is_last(const std::string& path) {
  return is_under_folder(path) && ++n_calls == kill_at;
}

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

using Write = ssize_t (*)(int, const void*, size_t, off_t);

ssize_t write_or_die(const char* name, int fd, const void* bytes, size_t n_bytes, off_t offset) {
  if (is_last(path_of(fd))) {
    // Anything from nothing to all, another share at each call.
    const uint64_t share = static_cast<uint64_t>(kill_at) * 0x9E3779B97F4A7C15u >> 40;
    original<Write>(name)(fd, bytes, n_bytes * share >> 24, offset);
    die();
  }
  return original<Write>(name)(fd, bytes, n_bytes, offset);
}

template <typename... Args>
int call_or_die(const char* name, const std::string& path, Args... args) {
  if (is_last(path)) die();
  return original<int (*)(Args...)>(name)(args...);
}

struct FromEnvironment {
  FromEnvironment() {
    const char* under = std::getenv("KILL_UNDER");
    const char* at = std::getenv("KILL_AT");
    if (under != nullptr) folder = under;
    if (at != nullptr) kill_at = std::atoi(at);
  }
} const from_environment;

}  // namespace

void forerun::test::kill_at_write(int n, const std::string& under) {
  folder = under;
  kill_at = n;
  n_calls = 0;
}

extern "C" {
ssize_t pwrite(int fd, const void* bytes, size_t n_bytes, off_t offset) {
  return write_or_die("pwrite", fd, bytes, n_bytes, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t n_bytes, off_t offset) {
  return write_or_die("pwrite64", fd, bytes, n_bytes, offset);
}
int fsync(int fd) {
  return call_or_die("fsync", path_of(fd), fd);
}
int fdatasync(int fd) {
  return call_or_die("fdatasync", path_of(fd), fd);
}
int ftruncate(int fd, off_t size) noexcept {
  return call_or_die("ftruncate", path_of(fd), fd, size);
}
int ftruncate64(int fd, off_t size) noexcept {
  return call_or_die("ftruncate64", path_of(fd), fd, size);
}
int rename(const char* from, const char* to) noexcept {
  return call_or_die("rename", to, from, to);
}
int unlink(const char* path) noexcept {
  return call_or_die("unlink", path, path);
}
int remove(const char* path) noexcept {
  return call_or_die("remove", path, path);
}
}
