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

  // A request begins a step; the time since the one before it counts, once for all requests that make
  // it together. What reading prompts takes, before a request's first step or beside others' steps, is
  // none of this: `pass_seconds` is what a pass of one row takes.
  void begin_step(bool is_first, double pass_seconds) {
    if (!is_first && last_) all_seconds_ += std::min(last_->seconds(), kLongestStep * pass_seconds);
    last_.emplace();
    ++n_steps_;
  }
  // Whether requests made so many steps; never where no time is to be used.
  bool has_seen(int n_steps) const { return share_ > 0 && n_steps_ >= n_steps; }
  // `part`: of the share, may be all that is used.
  bool allows(double seconds, double part = 1) const {
    return share_ >= 1 || used_seconds_ + seconds <= part * share_ * all_seconds_;
  }
  void use(double seconds) { used_seconds_ += seconds; }

 private:
  // In passes of one row. Longer between two steps, and prompts were read, or no request ran.
  static constexpr double kLongestStep = 8;

  double share_;
  std::optional<Stopwatch> last_;  // since the last step of any request
  double all_seconds_ = 0;         // of requests, what was used included
  double used_seconds_ = 0;
  int64_t n_steps_ = 0;
};

}  // namespace forerun
