// Whether drafting earns the time it takes: what finding drafts costs is no part of a cost
// curve, and where a pass takes a tenth of a millisecond it is most of what there is to lose.
//
// Counts, for the passes before which drafts were asked for, the time that as many tokens would
// have taken without drafts, less the time that they took. While that is below nothing, drafts
// are asked for less and less often.
//
// Not thread-safe.
#pragma once

#include <algorithm>

namespace forerun {

class DraftAccount {
 public:
  // A pass before which drafts were asked for gave `n_tokens` to `n_requests` requests in
  // `seconds`, drafting included; a pass without drafts takes `plain_seconds`.
  void add(double seconds, double plain_seconds, int n_requests, int n_tokens) {
    const double without = plain_seconds * n_tokens / n_requests;
    const double earned = std::clamp((without - seconds) / without, -kLargest, kLargest);
    earned_ += (earned - earned_) / kMemory;
    if (earned_ >= 0) {
      pause_ = kFirstPause;
    } else if (--n_tries_left_ <= 0) {
      n_paused_ = pause_;
      pause_ = std::min(2 * pause_, kLongestPause);
      n_tries_left_ = kTries;
    }
  }

  // Whether to ask for drafts; called once for every pass.
  bool wants_drafts() {
    if (n_paused_ == 0) return true;
    --n_paused_;
    return false;
  }

 private:
  static constexpr double kMemory = 16;  // passes
  static constexpr double kLargest = 2;  // one that was held up says nothing of drafts
  static constexpr int kTries = 4;       // between two pauses
  static constexpr int kFirstPause = 16, kLongestPause = 512;

  double earned_ = 0.25;  // trust to begin with
  int n_tries_left_ = kTries;
  int pause_ = kFirstPause;
  int n_paused_ = 0;
};

}  // namespace forerun
