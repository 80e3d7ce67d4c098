// Keeps work that is done beside requests to a share of their time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/stopwatch.h"

namespace forerun {

class TimeShare {
 public:
  // Of the time; 1: no limit.
  explicit TimeShare(double share) : share_(share) {}

  // A request begins a step; the time since the one before it counts. `last` is the request's
  // own, empty at first: what reading its prompt took is none of this.
  void begin_step(std::optional<Stopwatch>& last) {
    if (last) all_seconds_ += std::min(last->seconds(), kLongestStep);
    last.emplace();
    ++n_steps_;
  }
  // Whether requests made so many steps; never where no time is to be used.
  bool has_seen(int n_steps) const { return share_ > 0 && n_steps_ >= n_steps; }
  bool allows(double seconds) const {
    return share_ >= 1 || used_seconds_ + seconds <= share_ * all_seconds_;
  }
  void use(double seconds) { used_seconds_ += seconds; }

 private:
  // Longer between two steps of a request, and it did not run.
  static constexpr double kLongestStep = 5.0;

  double share_;
  double all_seconds_ = 0;  // of requests, what was used included
  double used_seconds_ = 0;
  int64_t n_steps_ = 0;
};

}  // namespace forerun
