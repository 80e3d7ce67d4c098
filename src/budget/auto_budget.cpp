#include "budget/auto_budget.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace forerun {
namespace {

// How much better a pass with drafts must look than one without: estimates are rough, and
// drafting itself takes a little.
constexpr double kMargin = 1.02;
// While drafts do not pay: so many passes between two of them, at most.
constexpr int kMaxPause = 8;
// Drafts of which nothing is verified, before the pauses begin.
constexpr int kPatience = 4;
// How fast measured passes change the curve, and how far one of them can.
constexpr double kCorrectionRate = 0.05;
constexpr double kCorrectionPrior = 4;
constexpr double kForgetting = 0.002;
constexpr double kMaxCorrection = 3.0;

}  // namespace

AutoBudget::AutoBudget(CostCurve curve, const Options& options)
    : curve_(std::move(curve)), options_(options), corrections_(curve_.points().size()) {}

int AutoBudget::max_nodes(RequestId request, const PassPlan& /*plan*/) {
  RequestState& state = requests_[request];
  state.has_draft = wants_drafts_ && state.n_until_next == 0;
  has_asked_ = has_asked_ || state.has_draft;
  if (state.has_draft) return options_.max_nodes;
  if (state.n_until_next > 0) --state.n_until_next;
  return 0;
}

void AutoBudget::choose(std::span<Proposal> proposals, const PassPlan& plan) {
  candidates_.clear();
  int n_drawn = 0;
  double expected = plan.n_decoding;
  for (size_t i = 0; i < proposals.size(); ++i) {
    const DraftTree& tree = *proposals[i].tree;
    RequestAcceptance& acceptance = requests_[proposals[i].request].acceptance;
    AcceptanceModel::propose(tree, acceptance);
    acceptance_.estimate(tree, acceptance, chances_);
    // A drawn token that is dropped for being unlikely is lost to the text: rules that
    // compare distributions take it for one that was never drawn.
    if (tree.has_distributions()) {
      n_drawn += tree.size();
      expected = std::accumulate(chances_.begin(), chances_.end(), expected);
      continue;
    }
    for (int32_t node = 0; node < tree.size(); ++node) {
      candidates_.push_back({.chance = chances_[static_cast<size_t>(node)],
                             .proposal = static_cast<int>(i),
                             .node = node});
    }
  }
  // Parents before children where chances are equal.
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.chance != b.chance) return a.chance > b.chance;
    return a.proposal != b.proposal ? a.proposal < b.proposal : a.node < b.node;
  });

  // The best number of candidates to take.
  const int n_fixed = plan.n_decoding + plan.n_prompt_rows + n_drawn;
  n_kept_.assign(proposals.size(), 0);
  double attention = 0;
  for (const Proposal& proposal : proposals) attention += curve_.attention(1, proposal.n_context);
  double best_rate = kMargin * expected / (curve_.rows(n_fixed) * correction(n_fixed) + attention);
  size_t n_best = 0;
  for (size_t k = 0; k < candidates_.size(); ++k) {
    const auto i = static_cast<size_t>(candidates_[k].proposal);
    const int n_rows = ++n_kept_[i];
    attention += curve_.attention(n_rows + 1, proposals[i].n_context) -
                 curve_.attention(n_rows, proposals[i].n_context);
    expected += candidates_[k].chance;
    const int n = n_fixed + static_cast<int>(k) + 1;
    const double rate = expected / (curve_.rows(n) * correction(n) + attention);
    if (rate > best_rate) {
      best_rate = rate;
      n_best = k + 1;
    }
  }

  std::vector<std::vector<bool>> keep(proposals.size());
  for (size_t i = 0; i < proposals.size(); ++i) {
    const DraftTree& tree = *proposals[i].tree;
    keep[i].assign(static_cast<size_t>(tree.size()), tree.has_distributions());
  }
  for (size_t k = 0; k < n_best; ++k) {
    keep[static_cast<size_t>(candidates_[k].proposal)][static_cast<size_t>(candidates_[k].node)] = true;
  }
  for (size_t i = 0; i < proposals.size(); ++i) {
    RequestState& state = requests_[proposals[i].request];
    proposals[i].tree->prune(keep[i]);
    if (!proposals[i].tree->empty()) {
      state.n_idle = 0;
    } else if (state.has_draft && ++state.n_idle > kPatience) {
      state.n_until_next = std::min(state.n_idle - kPatience, kMaxPause);
    }
  }
}

void AutoBudget::observe(const Outcome& outcome) {
  last_.n_tokens += static_cast<int>(outcome.tokens.size());
  acceptance_.observe(outcome.tokens, requests_[outcome.request].acceptance);
}

size_t AutoBudget::point_of(int n_rows) const {
  const auto& points = curve_.points();
  size_t i = 0;
  while (i + 1 < points.size() && points[i + 1].n_rows <= n_rows) ++i;
  return i;
}

double AutoBudget::correction(int n_rows) const {
  const size_t at = point_of(n_rows);
  for (size_t distance = 0; distance < corrections_.size(); ++distance) {
    for (const size_t i : {at - distance, at + distance}) {
      if (i < corrections_.size() && corrections_[i].n_observed > 0) return corrections_[i].factor;
    }
  }
  return 1.0;
}

// Of the pass before this one, whose tokens are all known now.
void AutoBudget::settle(const PassCost& cost) {
  if (last_.has_asked && last_.n_tokens > 0) {
    account_.add(last_.seconds, last_.plain_seconds, last_.n_requests, last_.n_tokens);
  }
  // Both as the curve has it: what else the machine does says nothing of drafts.
  const int n_requests = cost.plan.n_decoding;
  const auto seconds = [&](int n_rows) {
    return curve_.rows(n_rows) * correction(n_rows) +
           curve_.attention(std::max(1, n_rows / n_requests), cost.n_context);
  };
  last_ = {.has_asked = has_asked_ && cost.plan.n_prompt_rows == 0,
           .seconds = seconds(cost.n_rows) + cost.draft_seconds,
           .plain_seconds = seconds(n_requests),
           .n_requests = n_requests,
           .n_tokens = 0};
  has_asked_ = false;
  wants_drafts_ = account_.wants_drafts();
}

void AutoBudget::observe(const PassCost& cost) {
  settle(cost);
  const auto& points = curve_.points();
  if (cost.plan.n_prompt_rows > 0 || cost.n_rows > points.back().n_rows) return;
  const int n_per_request = std::max(1, cost.n_rows / cost.plan.n_decoding);
  const double predicted = curve_.rows(cost.n_rows);
  const double attention = curve_.attention(n_per_request, cost.n_context);
  const double ratio =
      std::clamp((cost.seconds - attention) / predicted, 1 / kMaxCorrection, kMaxCorrection);
  Correction& corrected = corrections_[point_of(cost.n_rows)];
  if (corrected.n_observed == 0) corrected.factor = correction(cost.n_rows);
  ++corrected.n_observed;
  const double rate = std::max(kCorrectionRate, 1.0 / (kCorrectionPrior + corrected.n_observed));
  corrected.factor += rate * (ratio - corrected.factor);
  // What was seen long ago becomes like what is seen now, or a point that once looked dear
  // would never be tried again.
  for (Correction& other : corrections_) {
    other.factor += kForgetting * (corrected.factor - other.factor);
  }
}

void AutoBudget::forget(RequestId request) {
  requests_.erase(request);
}

}  // namespace forerun
