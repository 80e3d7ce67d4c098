#include "optimise/bayesian_proposers.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "optimise/upper_confidence.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;
using Point = std::vector<double>;

Point corner_of(const Subset& set) {
  return Point(set.begin(), set.end());
}

// Corners, which most points are, as text.
Json point_json(const Point& point) {
  const auto is_binary = [](double x) { return x == 0 || x == 1; };
  if (!std::all_of(point.begin(), point.end(), is_binary)) return point;
  return to_text(Subset(point.begin(), point.end()));
}

Point point_from(const Json& json, size_t n_items) {
  if (json.is_string()) return corner_of(subset_from_text(json.get<std::string>(), n_items));
  return json.get<Point>();
}

// What the two strategies share: a process that learns every score.
class BayesianProposer : public SubsetProposer {
 public:
  BayesianProposer(int n_items, const BayesianOptions& options)
      : options_(options), process_(n_items, {.noise = options.noise}) {}

  std::optional<double> learn(const Subset& set, double score, const ScoredSubset* best) override {
    const bool is_raw = options_.registered == RegisteredPoint::kRaw && !proposed_.empty();
    process_.add(is_raw ? proposed_ : corner_of(set), score);
    proposed_.clear();
    return best == nullptr || score > best->score ? std::optional(score) : std::nullopt;
  }

  Json to_json() const override {
    const GaussianProcessState state = process_.state();
    Json points = Json::array();
    for (const Point& point : state.points) points.push_back(point_json(point));
    return {{"length", state.length},
            {"n_factored", state.n_factored},
            {"points", std::move(points)},
            {"scores", state.scores}};
  }

  void restore(const Json& json) override {
    GaussianProcessState state{.length = json.at("length").get<double>(),
                               .n_factored = json.at("n_factored").get<int>(),
                               .points = {},
                               .scores = json.at("scores").get<std::vector<double>>()};
    const auto n_items = static_cast<size_t>(process_.n_dimensions());
    for (const Json& point : json.at("points")) state.points.push_back(point_from(point, n_items));
    process_ = GaussianProcess(process_.n_dimensions(), {.noise = options_.noise}, state);
  }

 protected:
  int n_items() const { return process_.n_dimensions(); }
  bool has_scores() const { return process_.n_observations() > 0; }

  // The raw point of the next proposal.
  const Point& propose_point(Random& random) {
    const int n_fitted = process_.n_factored();
    if (process_.n_observations() > n_fitted * (1 + options_.refit_growth)) process_.fit();
    proposed_ = most_promising(process_,
                               {.kappa = options_.kappa,
                                .n_probes = options_.n_probes,
                                .n_random_starts = options_.n_random_starts,
                                .max_evaluations = options_.max_evaluations},
                               random)
                    .point;
    return proposed_;
  }
  const Point& propose_random_point(Random& random) {
    proposed_.resize(static_cast<size_t>(n_items()));
    for (double& x : proposed_) x = random.uniform();
    return proposed_;
  }

  BayesianOptions options_;

 private:
  GaussianProcess process_;
  Point proposed_;  // of the last proposal, if it was a point
};

class SwiftProposer final : public BayesianProposer {
 public:
  SwiftProposer(int n_items, int n_skipped, const BayesianOptions& options)
      : BayesianProposer(n_items, options), n_skipped_(n_skipped) {}

  Subset propose(int n_before, const ScoredSubset* /*best*/, Random& random) override {
    const bool is_turn = options_.every > 0 && (n_before + 1) % options_.every == 0;
    const std::vector<int> items =
        is_turn && has_scores() ? largest(propose_point(random)) : random.choose(n_items(), n_skipped_);
    Subset set(static_cast<size_t>(n_items()));
    for (const int item : items) set[static_cast<size_t>(item)] = true;
    return set;
  }

 private:
  // Of equal coordinates the first.
  std::vector<int> largest(const Point& point) const {
    std::vector<int> items(point.size());
    std::iota(items.begin(), items.end(), 0);
    std::stable_sort(items.begin(), items.end(), [&](int a, int b) {
      return point[static_cast<size_t>(a)] > point[static_cast<size_t>(b)];
    });
    items.resize(static_cast<size_t>(n_skipped_));
    return items;
  }

  int n_skipped_;
};

class SelfSdProposer final : public BayesianProposer {
 public:
  using BayesianProposer::BayesianProposer;

  Subset propose(int /*n_before*/, const ScoredSubset* /*best*/, Random& random) override {
    const Point& point = has_scores() ? propose_point(random) : propose_random_point(random);
    Subset set(point.size());
    std::transform(point.begin(), point.end(), set.begin(), [](double x) { return x > 0.5; });
    return set;
  }
};

}  // namespace

std::unique_ptr<SubsetProposer> make_swift_proposer(int n_items, int n_skipped,
                                                    const BayesianOptions& options) {
  return std::make_unique<SwiftProposer>(n_items, n_skipped, options);
}

std::unique_ptr<SubsetProposer> make_self_sd_proposer(int n_items, const BayesianOptions& options) {
  return std::make_unique<SelfSdProposer>(n_items, options);
}

}  // namespace forerun
