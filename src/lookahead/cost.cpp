#include "lookahead/cost.h"

#include <algorithm>
#include <cmath>

namespace forerun {
namespace {

// What is known at first: about as much as so many tokens would tell.
constexpr double kFirstTested = 4;
// What an observation keeps of its weight with every further one of its kind, and with every draft.
constexpr double kKept = 0.995;
constexpr double kKeptRate = 0.98;
constexpr double kFirstDrafts = 8;
// So many further tokens are looked at: the cost of rows has steps.
constexpr int kAhead = 6;

}  // namespace

void CostLookahead::Chance::add(bool agreed) {
  n_agreed = kKept * n_agreed + (agreed ? 1 : 0);
  n_tested = kKept * n_tested + 1;
}

// Finer towards 1, where most are.
size_t CostLookahead::bin_of(double probability) {
  const double doubt = std::clamp(1 - probability, 1e-6, 1.0);
  const double bin = -2 * std::log2(doubt);  // half a bit each
  return std::min(kBins - 1, static_cast<size_t>(bin));
}

CostLookahead::CostLookahead(const Calibration& costs)
    : costs_(costs), n_tokens_(kFirstDrafts), seconds_(kFirstDrafts * costs.curve.pass(1, 0)) {
  for (size_t bin = 0; bin < kBins; ++bin) {
    // A token's probability is a first guess of its chance; of the next one's, less so.
    const double probability = 1 - std::exp2(-(static_cast<double>(bin) + 0.5) / 2);
    of_token_[bin] = {.n_agreed = kFirstTested * probability, .n_tested = kFirstTested};
    of_next_[bin] = {.n_agreed = kFirstTested * (0.3 + 0.5 * probability), .n_tested = kFirstTested};
  }
}

class CostLookahead::OfRequest final : public Lookahead {
 public:
  explicit OfRequest(CostLookahead& policy) : policy_(policy) {}

  void begin(const DraftStart& start) override {
    start_ = start;
    reached_ = 1;
    bins_.clear();
  }

  bool goes_on(const DraftedToken& token) override {
    const size_t bin = bin_of(token.probability);
    bins_.push_back(bin);
    reached_ *= policy_.of_token_[bin].value();
    const double rate = policy_.n_tokens_ / policy_.seconds_;
    // The pass over the draft as it is has a row for each token and one more.
    const double pass = pass_seconds(token.depth + 1);
    double expected = 0, chance = reached_;
    for (int n = 1; n <= kAhead; ++n) {
      chance *= policy_.of_next_[bin].value();
      expected += chance;
      const double seconds = n * start_.token_seconds + pass_seconds(token.depth + n + 1) - pass;
      if (expected > rate * seconds) return true;
    }
    return false;
  }

  void observe(const ChainOutcome& outcome) override {
    for (int i = 0; i < outcome.n_tested; ++i) {
      const bool agreed = i < outcome.n_agreed;
      policy_.of_token_[bins_[static_cast<size_t>(i)]].add(agreed);
      if (i > 0) policy_.of_next_[bins_[static_cast<size_t>(i - 1)]].add(agreed);
    }
    policy_.n_tokens_ = kKeptRate * policy_.n_tokens_ + outcome.n_agreed + 1;
    policy_.seconds_ = kKeptRate * policy_.seconds_ + outcome.n_drafted * start_.token_seconds +
                       pass_seconds(outcome.n_drafted + 1);
  }

 private:
  double pass_seconds(int n_rows) const {
    return policy_.costs_.curve.pass(n_rows, start_.n_context, start_.n_requests);
  }

  CostLookahead& policy_;
  DraftStart start_;
  double reached_ = 1;        // the chance that the text takes all of the draft so far
  std::vector<size_t> bins_;  // of its tokens' probabilities
};

std::unique_ptr<Lookahead> CostLookahead::begin() {
  return std::make_unique<OfRequest>(*this);
}

}  // namespace forerun
