// Discards a request at the end, also when a pass fails: for callers that wait for its answer.
#pragma once

#include <utility>

#include "engine/stepper.h"

namespace forerun {

class DiscardGuard {
 public:
  // The stepper outlives it. A request that was taken by then is gone already.
  DiscardGuard(Stepper& stepper, RequestId request) : stepper_(&stepper), request_(request) {}
  DiscardGuard(DiscardGuard&& other) noexcept
      : stepper_(std::exchange(other.stepper_, nullptr)), request_(other.request_) {}
  DiscardGuard& operator=(DiscardGuard&&) = delete;
  ~DiscardGuard() {
    if (stepper_ != nullptr) stepper_->discard(request_);
  }

 private:
  Stepper* stepper_;
  RequestId request_;
};

}  // namespace forerun
