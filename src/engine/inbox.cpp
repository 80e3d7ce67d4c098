#include "engine/inbox.h"

#include <utility>

namespace forerun {

RequestId Inbox::submit(std::unique_ptr<ActiveRequest> request) {
  const std::scoped_lock lock(mutex_);
  const RequestId id{n_ids_++};
  request->id = id;
  content_.submitted.push_back(std::move(request));
  changed_.notify_all();
  return id;
}

void Inbox::cancel(RequestId request) {
  const std::scoped_lock lock(mutex_);
  content_.cancelled.push_back(request);
  changed_.notify_all();
}

void Inbox::wake() {
  const std::scoped_lock lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
}

Inbox::Content Inbox::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(content_, {});
}

int Inbox::n_submitted() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(content_.submitted.size());
}

void Inbox::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] {
    return is_woken_ || !content_.submitted.empty() || !content_.cancelled.empty();
  });
  is_woken_ = false;
}

}  // namespace forerun
