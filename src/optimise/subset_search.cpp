#include "optimise/subset_search.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/error.h"
#include "optimise/bayesian_proposers.h"
#include "optimise/group_test_proposer.h"
#include "optimise/neighbour_proposer.h"
#include "optimise/subset_proposer.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Raised when what is saved changes.
constexpr int kVersion = 1;

[[noreturn]] void fail_problem(std::string_view what) {
  fail(ErrorCode::kInvalidArgument, "search for items to skip: {}", what);
}

void check_problem(const SubsetProblem& problem, const SubsetSearchOptions& options, int n_free) {
  const auto n_items = static_cast<size_t>(problem.n_items);
  if (n_free == 0) fail_problem("there is no item that may be skipped");
  const bool has_size =
      options.strategy == SubsetStrategy::kSwift ||
      (options.strategy == SubsetStrategy::kNeighbour && !options.neighbour.may_resize);
  if (has_size && (problem.n_skipped < 0 || problem.n_skipped > n_free)) {
    fail_problem(fmt::format("{} items are to be skipped of {} that may be", problem.n_skipped, n_free));
  }
  for (const Subset& set : problem.first_sets) {
    if (set.size() != n_items) fail_problem("a set to begin with is of another number of items");
    for (size_t i = 0; i < n_items && !problem.is_protected.empty(); ++i) {
      if (set[i] && problem.is_protected[i]) fail_problem("a set to begin with skips a protected item");
    }
  }
  if (options.max_scores < 0 || options.max_without_progress < 0 || std::isnan(options.good_score)) {
    fail_problem("its limits must not be negative");
  }
  const BayesianOptions& bayesian = options.bayesian;
  if (bayesian.every < 0 || !(bayesian.refit_growth >= 0)) {
    fail_problem("how often its process is used and fitted must not be negative");
  }
  const NeighbourOptions& neighbour = options.neighbour;
  const bool has_share = neighbour.needed_share >= 0.01 && neighbour.needed_share <= 0.97;
  if (!has_share || !(neighbour.effect > 0) || !(neighbour.noise >= 0) || neighbour.retest_after < 0) {
    fail_problem("shares and effects must be positive, noise and retests not negative");
  }
}

std::unique_ptr<SubsetProposer> make_proposer(int n_free, int n_skipped,
                                              const SubsetSearchOptions& options) {
  switch (options.strategy) {
    case SubsetStrategy::kSwift: return make_swift_proposer(n_free, n_skipped, options.bayesian);
    case SubsetStrategy::kNeighbour:
      return make_neighbour_proposer(n_free, n_skipped, options.neighbour);
    case SubsetStrategy::kBayesian: return make_group_test_proposer(n_free, options.neighbour);
    case SubsetStrategy::kSelfSd: return make_self_sd_proposer(n_free, options.bayesian);
  }
  CHECK(false);
  return nullptr;
}

}  // namespace

int n_skipped(const Subset& set) {
  return static_cast<int>(std::count(set.begin(), set.end(), true));
}

std::string to_text(const Subset& set) {
  std::string text;
  for (const bool skipped : set) text += skipped ? '1' : '0';
  return text;
}

Subset subset_from_text(const std::string& text, size_t n_items) {
  if (text.size() != n_items || text.find_first_not_of("01") != std::string::npos) {
    fail(ErrorCode::kInvalidFile, "a set is not {} digits 0 or 1", n_items);
  }
  Subset set;
  for (const char c : text) set.push_back(c == '1');
  return set;
}

std::string_view to_string(SubsetStrategy strategy) {
  switch (strategy) {
    case SubsetStrategy::kSwift: return "swift";
    case SubsetStrategy::kNeighbour: return "neighbour";
    case SubsetStrategy::kBayesian: return "bayesian";
    case SubsetStrategy::kSelfSd: return "self-sd";
  }
  CHECK(false);
  return {};
}

SubsetSearchOptions SubsetSearchOptions::swift() {
  SubsetSearchOptions options;
  options.strategy = SubsetStrategy::kSwift;
  options.good_score = 0.95;
  return options;
}

SubsetSearchOptions SubsetSearchOptions::self_sd() {
  SubsetSearchOptions options;
  options.strategy = SubsetStrategy::kSelfSd;
  options.max_without_progress = std::numeric_limits<int>::max();
  options.bayesian.kappa = 2.576;
  return options;
}

SubsetSearch::SubsetSearch(SubsetProblem problem, const SubsetSearchOptions& options)
    : problem_(std::move(problem)), options_(options) {
  const auto n_items = static_cast<size_t>(std::max(0, problem_.n_items));
  if (!problem_.is_protected.empty() && problem_.is_protected.size() != n_items) {
    fail_problem("the protected items are not as many flags as there are items");
  }
  for (size_t i = 0; i < n_items; ++i) {
    if (problem_.is_protected.empty() || !problem_.is_protected[i])
      free_items_.push_back(static_cast<int>(i));
  }
  const auto n_free = static_cast<int>(free_items_.size());
  check_problem(problem_, options_, n_free);
  proposer_ = make_proposer(n_free, problem_.n_skipped, options_);
}

SubsetSearch::~SubsetSearch() = default;
SubsetSearch::SubsetSearch(SubsetSearch&&) noexcept = default;
SubsetSearch& SubsetSearch::operator=(SubsetSearch&&) noexcept = default;

Subset SubsetSearch::free_part(const Subset& set) const {
  Subset part;
  for (const int item : free_items_) part.push_back(set[static_cast<size_t>(item)]);
  return part;
}

Subset SubsetSearch::with_protected(const Subset& free_items) const {
  CHECK(free_items.size() == free_items_.size());
  Subset set(static_cast<size_t>(problem_.n_items));
  for (size_t i = 0; i < free_items.size(); ++i)
    set[static_cast<size_t>(free_items_[i])] = free_items[i];
  return set;
}

std::optional<ScoredSubset> SubsetSearch::free_best() const {
  std::optional<ScoredSubset> best = best_;
  if (best) best->set = free_part(best->set);
  return best;
}

const Subset& SubsetSearch::propose() {
  if (proposed_) return *proposed_;
  if (static_cast<size_t>(n_scores_) < problem_.first_sets.size()) {
    proposed_ = problem_.first_sets[static_cast<size_t>(n_scores_)];
    return *proposed_;
  }
  Random random(options_.seed, static_cast<uint64_t>(n_scores_));
  const std::optional<ScoredSubset> best = free_best();
  proposed_ = with_protected(proposer_->propose(n_scores_, best ? &*best : nullptr, random));
  return *proposed_;
}

void SubsetSearch::tell(double score) {
  CHECK(proposed_.has_value());
  if (!std::isfinite(score)) fail_problem("a score is not a finite number");
  const std::optional<ScoredSubset> best = free_best();
  const auto adopted = proposer_->learn(free_part(*proposed_), score, best ? &*best : nullptr);
  const bool is_progress = adopted && (!best_ || best_->set != *proposed_);
  if (adopted) best_ = {.set = *proposed_, .score = *adopted};
  ++n_scores_;
  n_without_progress_ = is_progress ? 0 : n_without_progress_ + 1;
  proposed_.reset();
}

std::optional<SearchEnd> SubsetSearch::ended() const {
  if (best_ && best_->score > options_.good_score) return SearchEnd::kGoodScore;
  if (n_without_progress_ > options_.max_without_progress) return SearchEnd::kNoProgress;
  if (n_scores_ >= options_.max_scores) return SearchEnd::kMaxScores;
  return std::nullopt;
}

Json SubsetSearch::to_json() const {
  Json json{{"version", kVersion},
            {"strategy", to_string(options_.strategy)},
            {"free", to_text(with_protected(Subset(free_items_.size(), true)))},
            {"n_scores", n_scores_},
            {"n_without_progress", n_without_progress_},
            {"learnt", proposer_->to_json()}};
  if (best_) {
    json["best"] = {{"set", to_text(best_->set)}, {"score", best_->score}};
  }
  return json;
}

void SubsetSearch::restore(const Json& json) {
  const int version = json.at("version").get<int>();
  if (version > kVersion) fail(ErrorCode::kUnsupported, "it was made by a newer version of forerun");
  if (version != kVersion) fail(ErrorCode::kInvalidFile, "there is no version {} of it", version);
  if (json.at("strategy").get<std::string>() != to_string(options_.strategy)) {
    fail(ErrorCode::kInvalidFile, "it is of the strategy {}", json.at("strategy").get<std::string>());
  }
  const auto n_items = static_cast<size_t>(problem_.n_items);
  const Subset free = subset_from_text(json.at("free").get<std::string>(), n_items);
  if (free != with_protected(Subset(free_items_.size(), true))) {
    fail(ErrorCode::kInvalidFile, "other items are protected there");
  }
  n_scores_ = json.at("n_scores").get<int>();
  n_without_progress_ = json.at("n_without_progress").get<int>();
  bool makes_sense = n_without_progress_ >= 0 && n_without_progress_ <= n_scores_;
  makes_sense &= json.contains("best") == (n_scores_ > 0);
  if (json.contains("best")) {
    const Json& best = json.at("best");
    best_ = {.set = subset_from_text(best.at("set").get<std::string>(), n_items),
             .score = best.at("score").get<double>()};
    makes_sense &= std::isfinite(best_->score);
    makes_sense &= with_protected(free_part(best_->set)) == best_->set;
  }
  if (!makes_sense) fail(ErrorCode::kInvalidFile, "its numbers contradict each other");
  proposer_->restore(json.at("learnt"));
}

SubsetSearch SubsetSearch::from_json(const Json& json, SubsetProblem problem,
                                     const SubsetSearchOptions& options) {
  SubsetSearch search(std::move(problem), options);
  try {
    search.restore(json);
  } catch (const Json::exception&) {
    fail(ErrorCode::kInvalidFile, "the saved search is damaged: start a new one");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) throw;
    fail(ErrorCode::kInvalidFile, "the saved search does not fit ({}): start a new one", error.what());
  }
  return search;
}

}  // namespace forerun
