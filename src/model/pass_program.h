// What computes a graph that was built.
#pragma once

namespace forerun {

class PassProgram {
 public:
  virtual ~PassProgram() = default;
  // Computes and waits: inputs are there, and memory for everything else. Throws Error when the device
  // fails.
  virtual void run() = 0;
};

}  // namespace forerun
