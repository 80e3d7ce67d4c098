// Looks for the set of items to skip that scores best, a proposal at a time.
//
// The caller evaluates: it asks for a set, tries it whenever it suits, and tells how it
// scored, so a search can run between other work.
//
//   SubsetSearch search({.n_items = 60, .n_skipped = 24}, options);
//   while (!search.ended()) search.tell(score_of(search.propose()));
//   use(search.best()->set);
//
// Strategies:
//
//   swift      as SWIFT publishes it (Xia et al.: "SWIFT: On-the-Fly Self-Speculative
//              Decoding for LLM Inference Acceleration", ICLR 2025): uniform random sets of a
//              fixed size, every 25th from a Gaussian process over all scores so far.
//   neighbour  ours: small changes of the best set so far (neighbour_proposer.h).
//   bayesian   ours: changes of the best set that a Bayesian model of the items suggests
//              (group_test_proposer.h).
//   self-sd    as Draft & Verify and KNN-SSD do it (Zhang et al., ACL 2024; Song et al.,
//              2025): a number in [0, 1] per item, skipped above a half, every proposal from
//              the Gaussian process.
//
// Higher scores are better. Everything is deterministic for a seed. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace forerun {

using Subset = std::vector<bool>;  // per item: is it skipped?

int n_skipped(const Subset& set);

struct SubsetProblem {
  int n_items = 0;
  // Items that are never skipped, a flag per item; empty: none.
  std::vector<bool> is_protected = {};
  // How many a set skips: every set of `swift`, the sets of `neighbour` unless it may resize.
  // `bayesian` and `self-sd` skip as many as are worth it.
  int n_skipped = 0;
  // Sets that are proposed before any other, without protected items.
  std::vector<Subset> first_sets = {};
};

enum class SubsetStrategy { kSwift, kNeighbour, kBayesian, kSelfSd };
std::string_view to_string(SubsetStrategy strategy);

// Which point a proposal of a Gaussian process is scored at in it.
enum class RegisteredPoint {
  // The point in the cube that was rounded to the set. What both papers' programs do, hence
  // the default: the strategies of their names are to show what they reach.
  kRaw,
  // The corner of the cube that is the set: what was really scored, so the process does not
  // learn from points which it has no scores of.
  kRounded,
};

// Of the strategies with a Gaussian process (gaussian_process.h, upper_confidence.h).
struct BayesianOptions {
  // `swift`: every how many proposals one is from the process; 0: never.
  int every = 25;
  RegisteredPoint registered = RegisteredPoint::kRaw;
  // SWIFT 2.5, the others 2.576.
  double kappa = 2.5;
  double noise = 1e-2;
  // As published, for 4 s a proposal with 1,000 scores of 270 items. In so many dimensions probes
  // find nothing that the local searches miss: 200, no random starts and 30 evaluations take
  // 0.1 s and come within a tenth of the bound.
  int n_probes = 10'000;
  int n_random_starts = 10;
  int max_evaluations = 100;  // of a local search
  // The length scale is fitted anew once there are this share more observations. Published: 0,
  // at each proposal of the process, which takes seconds for a thousand observations.
  double refit_growth = 0.1;
};

// Of the strategies that change the best set, `neighbour` and `bayesian`.
struct NeighbourOptions {
  bool may_resize = true;  // `bayesian` always may
  // The share of items that are expected to be needed, in [0.01, 0.97].
  double needed_share = 0.25;
  // How much skipping a needed item lowers the score, and the noise of the first score, as
  // shares of the score.
  double effect = 0.1;
  double noise = 0.02;
  // The best set is scored again after this many proposals without success, and after changes
  // until it is known as well as the noise demands; 0: never, for scores without noise.
  int retest_after = 10;
};

struct SubsetSearchOptions {
  SubsetStrategy strategy = SubsetStrategy::kNeighbour;
  uint64_t seed = 1;
  // The search has ended after this many scores, or more than this many without a better
  // set, or with a score above this.
  int max_scores = 1000;
  int max_without_progress = 300;
  double good_score = std::numeric_limits<double>::infinity();
  BayesianOptions bayesian = {};
  NeighbourOptions neighbour = {};

  // As published: agreement is the score, and 0.95 of it is enough.
  static SubsetSearchOptions swift();
  // As published: 1,000 steps, come what may.
  static SubsetSearchOptions self_sd();
};

enum class SearchEnd { kMaxScores, kNoProgress, kGoodScore };

struct ScoredSubset {
  Subset set;
  double score = 0;  // `neighbour`, `bayesian`: an estimate, since scores may be noisy
  bool operator==(const ScoredSubset&) const = default;
};

class SubsetProposer;

class SubsetSearch {
 public:
  // Throws Error for a problem or options that make no sense.
  SubsetSearch(SubsetProblem problem, const SubsetSearchOptions& options);
  ~SubsetSearch();
  SubsetSearch(SubsetSearch&&) noexcept;
  SubsetSearch& operator=(SubsetSearch&&) noexcept;

  // The set to score next: the same one until tell(). Goes on after the end, if asked to.
  const Subset& propose();
  // The score of the set that was proposed last. Throws Error if it is not finite.
  void tell(double score);

  // Which rule has ended the search, if one has.
  std::optional<SearchEnd> ended() const;
  // The best set so far; none before the first score.
  const std::optional<ScoredSubset>& best() const { return best_; }
  int n_scores() const { return n_scores_; }
  int n_without_progress() const { return n_without_progress_; }

  // All that was learnt. A search restored with the problem and options it was saved with goes
  // on exactly as the saved one; other options (a seed, limits) apply from there on. from_json
  // throws Error: {kInvalidFile} for what is damaged or about other items, {kUnsupported} for
  // what a newer version made.
  nlohmann::ordered_json to_json() const;
  static SubsetSearch from_json(const nlohmann::ordered_json& json, SubsetProblem problem,
                                const SubsetSearchOptions& options);

 private:
  // Between all items and those that may be skipped.
  Subset free_part(const Subset& set) const;
  Subset with_protected(const Subset& free_items) const;
  std::optional<ScoredSubset> free_best() const;
  void restore(const nlohmann::ordered_json& json);

  SubsetProblem problem_;
  SubsetSearchOptions options_;
  std::vector<int> free_items_;
  std::unique_ptr<SubsetProposer> proposer_;  // knows free items only
  std::optional<Subset> proposed_;
  std::optional<ScoredSubset> best_;
  int n_scores_ = 0;
  int n_without_progress_ = 0;
};

}  // namespace forerun
