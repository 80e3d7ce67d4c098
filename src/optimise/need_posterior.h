// Which items are needed, as far as tests of groups tell: Bayesian group testing.
//
// Each item is needed or not, with the same chance before any test. A test of a group says how
// much likelier its outcome is if one or more of the group are needed than if none is. What
// follows for all items together has no closed form; draws from it come of Gibbs sampling (Geman
// and Geman, 1984), an item at a time given all others. So when one item of a group that failed
// turns out to be needed, the others are in the clear.
//
// Tests fade with age, since what they say depends on what else was skipped then, and the oldest
// are forgotten.
//
// Deterministic: draws depend on what was learnt only. A test costs about 40 steps per item of
// each test that is remembered.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "optimise/random.h"

namespace forerun {

class NeedPosterior {
 public:
  NeedPosterior(int n_items, double needed_share);

  // How likely it is that the item is needed; never quite 0 or 1.
  double doubt(int item) const { return doubts_[static_cast<size_t>(item)]; }
  // How likely it is that none of these is.
  double none_needed(std::span<const int> items) const;
  // The same for the first 0, 1, ... of these, up to all.
  std::vector<double> none_needed_of_first(std::span<const int> items) const;

  // The outcome of a test of these items was exp(evidence) times as likely if one or more of
  // them are needed.
  void learn(std::vector<int> items, double evidence);

  nlohmann::ordered_json to_json() const;
  // Throws nlohmann's exceptions or Error for what it did not write.
  void restore(const nlohmann::ordered_json& json);

 private:
  struct Test {
    std::vector<int> items;
    double evidence;
  };

  void draw();

  double needed_share_;
  std::deque<Test> tests_;  // oldest first
  int n_learnt_ = 0;
  // What the draws began with: they are made again from it.
  std::vector<double> begin_;
  std::vector<double> doubts_;
  std::vector<std::vector<bool>> draws_;  // per draw and item: is it needed?
};

}  // namespace forerun
