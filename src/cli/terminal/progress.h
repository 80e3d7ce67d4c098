// How far long work is: a line on standard error, drawn over itself on a terminal and
// written now and then where it goes elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace forerun {

// "42 s", "3:07 min", "1:05 h".
std::string time_in_words(double seconds);

// Takes the line away at its end. Not thread-safe.
class WorkProgress {
 public:
  // `what`: "reading", in front of everything.
  explicit WorkProgress(std::string what);
  ~WorkProgress();
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

  // The share that is done, and more to say. The time left follows from how long it took
  // so far.
  void show(double share, const std::string& more = {});

  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace forerun
