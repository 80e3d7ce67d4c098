#include "retrieval/store/idle.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <thread>

#include "core/cpu_topology.h"

namespace forerun {
namespace {

// Where the system does not allow one of these, the work is done with what it allows.
void become_idle() {
  unpin_current_thread();
  const sched_param no_priority{};
  static_cast<void>(::sched_setscheduler(0, SCHED_IDLE, &no_priority));
  // ioprio_set(IOPRIO_WHO_PROCESS, this thread, IOPRIO_CLASS_IDLE); there is no header for it.
  constexpr int kThisThread = 1;
  constexpr int kIdleClass = 3 << 13;
  static_cast<void>(::syscall(SYS_ioprio_set, kThisThread, 0, kIdleClass));
}

}  // namespace

void run_when_idle(const std::function<void()>& function) {
  std::exception_ptr thrown;
  std::thread thread([&] {
    become_idle();
    try {
      function();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace forerun
