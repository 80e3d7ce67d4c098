// Ctrl-C: stops the answer that is being made, not the program.
#pragma once

namespace forerun {

// While one lives, SIGINT only sets a flag.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether Ctrl-C was pressed since the last call.
  static bool take();

  // Waits until `file` can be read; false: Ctrl-C was pressed, before or meanwhile.
  static bool wait_for_input(int file);
};

// What a command throws that Ctrl-C ended early, once it has printed what it has.
struct Interrupted {};

// Throws Error if Ctrl-C was pressed: for work that writes its result at the end.
void check_interrupt();

}  // namespace forerun
