#include "retrieval/store/background.h"

#include <exception>
#include <new>
#include <utility>

#include "core/cpu_topology.h"

namespace forerun {
namespace {

using namespace std::chrono_literals;

// After a failure, such as a full disk.
constexpr auto kRetryDelay = 30s;
// Gives way to somebody who wants to change files.
constexpr auto kYieldDelay = 10ms;
constexpr auto kFreeInterval = 1s;

}  // namespace

Background::Background(const Maintenance::Parts& parts, Maintenance& maintenance, Settings settings)
    : live_(parts.live), table_(parts.table), maintenance_(maintenance), settings_(std::move(settings)) {
  threads_.emplace_back([this] { sync_loop(); });
  threads_.emplace_back([this] { merge_loop(); });
  threads_.emplace_back([this] { fold_loop(); });
}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Background::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++n_wakes_;
  }
  changed_.notify_all();
}

bool Background::sleep_until(Clock::time_point deadline, bool wakeable) {
  std::unique_lock lock(mutex_);
  const uint64_t n_before = n_wakes_;
  changed_.wait_until(lock, deadline, [&] { return stopping_ || (wakeable && n_wakes_ != n_before); });
  return !stopping_;
}

bool Background::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Background::attempt(const std::function<void()>& work) {
  std::string problem;
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    problem = "not enough memory to merge segments of the datastore";
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (settings_.on_problem) settings_.on_problem(problem);
  return false;
}

Effort Background::effort() const {
  return {.n_threads = 1, .when_idle = true, .progress = [this](double) {
            return !stopping() && !maintenance_.is_wanted();
          }};
}

void Background::sync_loop() {
  unpin_current_thread();
  const auto interval = settings_.sync_interval > 0ms ? settings_.sync_interval : kFreeInterval;
  while (sleep_until(Clock::now() + interval, false)) {
    attempt([&] { live_.sync(); });
    table_.free_unused();
  }
}

void Background::merge_loop() {
  unpin_current_thread();
  do {
    const bool done = attempt([&] {
      while (!stopping() && maintenance_.merge_in_memory(effort())) {
      }
    });
    if (!done && !sleep_until(Clock::now() + kRetryDelay, false)) return;
  } while (sleep_until(Clock::now() + kFreeInterval, true));
}

void Background::fold_loop() {
  unpin_current_thread();
  do {
    while (!stopping() && maintenance_.wants_tidy()) {
      bool finished = true;
      const bool done = attempt([&] { finished = maintenance_.tidy(effort()); });
      const auto delay = !done ? Clock::duration(kRetryDelay) : Clock::duration(kYieldDelay);
      if ((!done || !finished) && !sleep_until(Clock::now() + delay, false)) return;
    }
  } while (sleep_until(Clock::now() + kFreeInterval, true));
}

}  // namespace forerun
