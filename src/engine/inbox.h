// What other threads ask of a stepper: requests to begin, requests to end.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/active_request.h"

namespace forerun {

class Inbox {
 public:
  struct Content {
    std::vector<std::unique_ptr<ActiveRequest>> submitted;  // in the order of their ids
    std::vector<RequestId> cancelled;
  };

  // Gives the request its id.
  RequestId submit(std::unique_ptr<ActiveRequest> request);
  void cancel(RequestId request);
  // Ends a wait() that goes on, or the next one.
  void wake();

  Content take();
  // How many are in it.
  int n_submitted() const;
  // Until there is something in it, or the time is over.
  void wait(std::chrono::milliseconds most);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t n_ids_ = 0;
  bool is_woken_ = false;
  Content content_;
};

}  // namespace forerun
