// The threads that look after an open store.
//
// One syncs the journal, one merges live text in memory, one folds it into files and
// merges those. They sleep nearly always. They run at ordinary priority but leave what
// takes long to threads that run only when the machine is idle (idle.h); so what an idle
// thread holds is never waited for by whoever adds or reads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "retrieval/store/maintenance.h"

namespace forerun {

class Background {
 public:
  struct Settings {
    std::chrono::milliseconds sync_interval;  // 0: documents are synced as they are added
    // Gets what went wrong, on one of the threads.
    std::function<void(const std::string&)> on_problem;
  };

  Background(const Maintenance::Parts& parts, Maintenance& maintenance, Settings settings);
  // Gives up what is being done; the journal keeps what is not folded yet.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // There is more live text than before.
  void wake();

 private:
  using Clock = std::chrono::steady_clock;

  // Sleeps until `deadline` or, if `wakeable`, until wake(). False: time to stop.
  bool sleep_until(Clock::time_point deadline, bool wakeable);
  bool stopping() const;
  // Calls `work` and reports what it throws; false: it threw.
  bool attempt(const std::function<void()>& work);
  Effort effort() const;

  void sync_loop();
  void merge_loop();
  void fold_loop();

  LiveText& live_;
  SegmentTable& table_;
  Maintenance& maintenance_;
  const Settings settings_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  uint64_t n_wakes_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace forerun
