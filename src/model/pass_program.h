// What computes a graph that was built.
#pragma once

namespace forerun {

class PassProgram {
 public:
  virtual ~PassProgram() = default;
  // Computes and waits: inputs are there, and memory for everything else. Throws Error when the device
  // fails.
  virtual void run() = 0;
  // Does ahead what the first runs would do besides computing. Inputs are zeros, and states are written
  // for them.
  virtual void prepare() {}
  // Whether the last run took what such runs take, and prepared nothing for later ones.
  virtual bool was_usual() const { return true; }
};

}  // namespace forerun
