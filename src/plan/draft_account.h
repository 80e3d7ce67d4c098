// Whether looking drafts up earns the time it takes: what finding drafts costs is no part of a cost
// curve, and where a pass takes a tenth of a millisecond it is most of what there is to lose.
//
// Counts, for the passes before which drafts were looked for, what they gained less what looking
// usually takes. While that is below nothing, and looking is not next to free, drafts are looked for
// less and less often.
//
// What looking usually takes is what three lookups of four do not exceed: those that were held up, by
// the disk or by what else the machine does, say nothing of those to come. The first are on trust.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace forerun {

class DraftAccount {
 public:
  // Drafts were looked for, which took `cost`; they saved `gain`, the time to look not counted. Both
  // in passes without drafts.
  void add(double cost, double gain) {
    costs_[n_costs_++ % costs_.size()] = cost;
    const double usual = usual_cost();
    earned_ += (std::max(gain - usual, -kLargestLoss) - earned_) / kMemory;
    const bool pays = usual < kNextToFree || earned_ >= 0;
    if (!pays && --n_tries_left_ > 0) return;
    n_tries_left_ = kTries;
    if (!pays) n_paused_ = pause_;
    pause_ = pays ? kFirstPause : std::min(2 * pause_, kLongestPause);
  }

  // Whether to look for drafts; called once for every pass.
  bool wants_drafts() {
    if (n_paused_ == 0) return true;
    --n_paused_;
    return false;
  }

 private:
  double usual_cost() const {
    auto sorted = costs_;
    std::ranges::sort(sorted);
    return sorted[sorted.size() * 3 / 4 - 1];
  }

  static constexpr double kNextToFree = 0.03;
  static constexpr double kMemory = 16;      // passes
  static constexpr double kLargestLoss = 2;  // one that was held up says nothing of drafts
  static constexpr int kTries = 4;           // between two pauses
  static constexpr int kFirstPause = 16, kLongestPause = 512;

  std::array<double, 16> costs_{};  // the last ones
  size_t n_costs_ = 0;
  double earned_ = 0.25;  // trust to begin with
  int n_tries_left_ = kTries;
  int pause_ = kFirstPause;
  int n_paused_ = 0;
};

}  // namespace forerun
