// Another program that runs beside ours. It never outlives us: it is killed with the
// object, and by the system when we are killed (Linux).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace forerun {

// Not thread-safe. Make it from a thread that lives as long as the child should: the system
// takes the end of that thread for ours.
class ChildProcess {
 public:
  // Starts arguments[0], a path or a name in PATH, with no input; whatever it prints is kept
  // in a temporary file without a name. It may run on all CPUs, wherever we are pinned.
  // Throws Error.
  explicit ChildProcess(std::vector<std::string> arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool is_running();
  // Waits for its end; true: it ended well.
  bool wait();
  // How it ended: "ended with code 1", "was killed by signal 4 (Illegal instruction)".
  std::string end_words() const;

  // What it has printed so far, and the last line of that which is not empty.
  std::string output() const;
  std::string last_line() const;

 private:
  bool reap(int flags);

  pid_t process_ = 0;
  int log_ = -1;
  std::optional<int> status_;  // waitpid()'s, once it is over
};

}  // namespace forerun
