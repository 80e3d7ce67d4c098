#include "text/large_stack.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

constexpr size_t kSmallest = size_t{1} << 20;  // room for thread-local data, too

struct Call {
  const std::function<void()>& function;
  std::exception_ptr thrown;
};

void* run(void* argument) {
  auto* call = static_cast<Call*>(argument);
  try {
    call->function();
  } catch (...) {
    call->thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void run_on_large_stack(size_t n_bytes, const std::function<void()>& function) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = (std::max(n_bytes, kSmallest) + page - 1) / page * page;

  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  Call call{function, nullptr};
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, size) == 0 &&
                       pthread_create(&thread, &attributes, run, &call) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) fail(ErrorCode::kOutOfMemory, "no memory for a stack of {} MiB", size >> 20);
  CHECK(pthread_join(thread, nullptr) == 0);
  if (call.thrown) std::rethrow_exception(call.thrown);
}

// libstdc++'s recurses over every character of a match: 320 to 464 bytes of stack each were measured.
// Beyond the first bound a text gets a stack for the worst case, in which all of it is one match.
void run_on_stack_for_regex(size_t n_text_bytes, const std::function<void()>& function) {
  constexpr size_t kMaxBytesOnCallersStack = 1024;
  constexpr size_t kStackPerByte = 1024;
  constexpr size_t kStackBase = size_t{1} << 20;
  if (n_text_bytes <= kMaxBytesOnCallersStack) return function();
  run_on_large_stack(kStackBase + kStackPerByte * n_text_bytes, function);
}

}  // namespace forerun
