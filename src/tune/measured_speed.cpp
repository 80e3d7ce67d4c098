#include "tune/measured_speed.h"

#include <algorithm>

#include "plan/own_planner.h"

namespace forerun {
namespace {

// Candidates between two measurements of plain decoding.
constexpr int kPlainEvery = 8;

}  // namespace

MeasuredSpeed::MeasuredSpeed(Executor& executor, PassCosts& costs, const Vocabulary& vocabulary,
                             const ChainOptions& draft, std::vector<SearchText> texts)
    : executor_(executor),
      costs_(costs),
      draft_(draft),
      timer_(executor, vocabulary, std::move(texts)) {}

double MeasuredSpeed::rate(const Speculation& speculation) {
  timer_.warm_up(speculation);
  double ms = 0;
  int n_tokens = 0;
  for (size_t text = 0; text < timer_.n_texts(); ++text) {
    ms += timer_.answer(text, speculation);
    n_tokens += timer_.n_timed(text);
  }
  return 1e3 * n_tokens / std::max(ms, 1e-3);
}

double MeasuredSpeed::speedup(const LayerSet& layers) {
  if (plain_rate_ == 0 || n_since_plain_ == kPlainEvery) {
    const double now = rate({});
    plain_rate_ = plain_rate_ == 0 ? now : (plain_rate_ + now) / 2;
    n_since_plain_ = 0;
  }
  ++n_since_plain_;
  DrafterSet drafters;
  drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(
      draft_, executor_, costs_, std::make_unique<FixedLayers>(layers)));
  OwnPlanner planner(std::move(drafters), kLargestTree);
  return rate({.planner = &planner}) / plain_rate_;
}

}  // namespace forerun
