#include "stopping/thresholds.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace forerun {
namespace {

// A rule without memory.
class Rule final : public RequestStoppingRule {
 public:
  explicit Rule(std::function<bool(const DraftedToken&)> goes_on) : goes_on_(std::move(goes_on)) {}
  bool goes_on(const DraftedToken& token) override { return goes_on_(token); }

 private:
  std::function<bool(const DraftedToken&)> goes_on_;
};

// A number that a policy keeps and changes by what becomes of drafts.
template <typename Kept, typename GoesOn>
class Learning final : public RequestStoppingRule {
 public:
  Learning(Kept& kept, GoesOn goes_on) : kept_(kept), goes_on_(goes_on) {}
  bool goes_on(const DraftedToken& token) override { return goes_on_(kept_, token); }
  void observe(const ChainOutcome& outcome) override { kept_.observe(outcome); }

 private:
  Kept& kept_;
  GoesOn goes_on_;
};

// Draft & Verify's numbers.
constexpr double kWantedShare = 0.9;
constexpr double kStep = 0.01;
// How much of what was is kept.
constexpr double kKeptShare = 0.5;
constexpr double kKeptThreshold = 0.9;

// Hugging Face's.
constexpr int kMoreIfAllTaken = 2;
constexpr size_t kEnoughSeen = 5;
constexpr double kMissedWeight = 3;

}  // namespace

std::unique_ptr<RequestStoppingRule> FixedLength::begin() {
  return std::make_unique<Rule>([this](const DraftedToken& token) { return token.depth < n_tokens_; });
}

std::unique_ptr<RequestStoppingRule> HeuristicLength::begin() {
  const auto goes_on = [](const HeuristicLength& length, const DraftedToken& token) {
    return token.depth < length.n_tokens();
  };
  return std::make_unique<Learning<HeuristicLength, decltype(goes_on)>>(*this, goes_on);
}

void HeuristicLength::observe(const ChainOutcome& outcome) {
  if (outcome.n_drafted == 0) return;
  if (outcome.n_agreed < outcome.n_drafted) {
    n_tokens_ = std::max(1, n_tokens_ - 1);
  } else if (outcome.n_drafted >= n_tokens_) {  // else something other than this rule ended it
    n_tokens_ += kMoreIfAllTaken;
  }
}

std::unique_ptr<RequestStoppingRule> ConfidenceThreshold::begin() {
  return std::make_unique<Rule>(
      [this](const DraftedToken& token) { return token.probability >= threshold_; });
}

void AdaptiveThreshold::observe(const ChainOutcome& outcome) {
  if (outcome.n_drafted == 0) return;
  const double share = static_cast<double>(outcome.n_agreed) / outcome.n_drafted;
  accepted_ = kKeptShare * accepted_ + (1 - kKeptShare) * share;
  double wanted = value_;
  if (accepted_ < kWantedShare) {
    wanted += kStep;
  } else if (!outcome.is_longest) {
    wanted -= kStep;
  }
  value_ = std::clamp(kKeptThreshold * value_ + (1 - kKeptThreshold) * wanted, 0.0, 1.0);
}

std::unique_ptr<RequestStoppingRule> AdaptiveConfidence::begin() {
  const auto goes_on = [](const AdaptiveThreshold& threshold, const DraftedToken& token) {
    return token.probability >= threshold.value();
  };
  return std::make_unique<Learning<AdaptiveThreshold, decltype(goes_on)>>(threshold_, goes_on);
}

void RocThreshold::observe(double probability, bool agreed) {
  if (seen_.size() < kKept) {
    seen_.push_back({.probability = probability, .agreed = agreed});
    return;
  }
  seen_[next_] = {.probability = probability, .agreed = agreed};
  next_ = (next_ + 1) % kKept;
}

void RocThreshold::update() {
  const auto n_good = std::count_if(seen_.begin(), seen_.end(), [](const Seen& s) { return s.agreed; });
  const auto n_bad = static_cast<ptrdiff_t>(seen_.size()) - n_good;
  if (seen_.size() <= kEnoughSeen || n_good == 0 || n_bad == 0) return;
  sorted_ = seen_;
  std::ranges::sort(sorted_, std::ranges::greater(), &Seen::probability);
  // Going on at the threshold of each probability, from the highest on: what is drafted in vain
  // against what is not drafted.
  double best = kMissedWeight;
  ptrdiff_t n_vain = 0, n_drafted = 0;
  for (size_t i = 0; i < sorted_.size(); ++i) {
    (sorted_[i].agreed ? n_drafted : n_vain) += 1;
    const bool is_last = i + 1 == sorted_.size();
    if (!is_last && sorted_[i + 1].probability == sorted_[i].probability) continue;
    const double cost =
        static_cast<double>(n_vain) / static_cast<double>(n_bad) +
        kMissedWeight * static_cast<double>(n_good - n_drafted) / static_cast<double>(n_good);
    if (cost >= best) continue;
    best = cost;
    value_ = sorted_[i].probability;
  }
}

std::unique_ptr<RequestStoppingRule> RocConfidence::begin() {
  class OfRequest final : public RequestStoppingRule {
   public:
    explicit OfRequest(RocThreshold& threshold) : threshold_(threshold) {}
    void begin(const DraftStart& /*start*/) override { probabilities_.clear(); }
    bool goes_on(const DraftedToken& token) override {
      probabilities_.push_back(token.probability);
      return token.probability >= threshold_.value();
    }
    void observe(const ChainOutcome& outcome) override {
      for (int i = 0; i < outcome.n_tested; ++i) {
        threshold_.observe(probabilities_[static_cast<size_t>(i)], i < outcome.n_agreed);
      }
      threshold_.update();
    }

   private:
    RocThreshold& threshold_;
    std::vector<double> probabilities_;
  };
  return std::make_unique<OfRequest>(threshold_);
}

std::unique_ptr<RequestStoppingRule> PerplexityThreshold::begin() {
  class OfRequest final : public RequestStoppingRule {
   public:
    explicit OfRequest(double most) : log_most_(std::log(most)) {}
    void begin(const DraftStart& /*start*/) override { sum_ = 0; }
    bool goes_on(const DraftedToken& token) override {
      sum_ -= std::log(std::max(token.probability, 1e-30));
      return sum_ / token.depth <= log_most_;
    }

   private:
    double log_most_;
    double sum_ = 0;  // of negative log-probabilities
  };
  return std::make_unique<OfRequest>(most_);
}

std::unique_ptr<RequestStoppingRule> Oracle::begin() {
  return std::make_unique<Rule>([](const DraftedToken& token) { return token.token == token.known; });
}

}  // namespace forerun
