// How a strategy of subset_search.h takes part: it proposes sets and learns their scores.
//
// It sees the items that may be skipped only. What it proposes depends on what it has learnt
// and on the random numbers it is given, nothing else: a proposal that was not scored when
// the search was saved is made again.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "optimise/random.h"
#include "optimise/subset_search.h"

namespace forerun {

class SubsetProposer {
 public:
  virtual ~SubsetProposer() = default;

  // `n_before` sets were scored before; `best` is the best of them, null if there is none.
  virtual Subset propose(int n_before, const ScoredSubset* best, Random& random) = 0;

  // The score of the set proposed last, or of one that was given. Returns the score with which
  // it is the best set from now on, or nothing if `best` stays.
  virtual std::optional<double> learn(const Subset& set, double score, const ScoredSubset* best) = 0;

  virtual nlohmann::ordered_json to_json() const = 0;
  // Into a new proposer. Throws nlohmann's exceptions or Error for what it did not write.
  virtual void restore(const nlohmann::ordered_json& json) = 0;
};

// Sets as text, a digit per item: "0110". from_text throws Error for any other text.
std::string to_text(const Subset& set);
Subset subset_from_text(const std::string& text, size_t n_items);

}  // namespace forerun
