// Trying again after a connection was lost, with growing pauses.
#pragma once

#include <functional>

#include "http_client/http_get.h"

namespace forerun {

class Retries {
 public:
  // `on_wait` is called during pauses, and may throw.
  explicit Retries(std::function<void()> on_wait) : on_wait_(std::move(on_wait)) {}

  // Returns when it is time to try again. Throws Error when it was tried often enough.
  void after(const ConnectionLost& loss);
  // Something came: the next loss is the first again.
  void progressed() { n_lost_ = 0; }

 private:
  std::function<void()> on_wait_;
  int n_lost_ = 0;
};

// What `work` returns, as soon as it does not lose its connection.
template <typename Work>
auto with_retries(const std::function<void()>& on_wait, Work work) {
  Retries retries(on_wait);
  while (true) {
    try {
      return work();
    } catch (const ConnectionLost& loss) {
      retries.after(loss);
    }
  }
}

}  // namespace forerun
