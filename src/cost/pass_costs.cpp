#include "cost/pass_costs.h"

#include <algorithm>
#include <cmath>

namespace forerun {
namespace {

// Passes that a measurement is worth.
constexpr double kFirstWeight = 4;
// Every pass tells how fast the machine is just now: others use it, too. How numbers of rows compare
// with each other hardly changes, and what drafts cost is a small difference of these: it is learnt from
// many passes.
constexpr double kSlowestSpeedRate = 0.2;
constexpr double kLeastAttentionFactor = 0.05;
// One pass that was held up says little: it counts for at most so many times what was expected.
constexpr double kMostSurprise = 1.5;
// A guess may be far off, but no pass takes nothing: clocks are coarse.
constexpr double kMostSurpriseOfGuess = 1e6;
// What was seen fades with every further pass, so that a number of rows that once looked dear is
// tried again.
constexpr double kKept = 0.998;
constexpr double kMostSeen = 50;
// Passes that another number of rows counts for at most.
constexpr double kMostOfOthers = 2;
// Shorter prompts say nothing of what rows take.
constexpr int kShortestPrompt = 16;
// A number of rows whose passes have not faded further was seen.
constexpr double kSeen = 0.5;
// Passes that a prompt counts for.
constexpr double kOfPrompt = 0.5;
// By how much unseen passes of a guess look cheaper than they are thought to be.
constexpr double kOptimism = 0.1;
// How fast what reading takes follows, and how far from what passes with few rows say.
constexpr double kReadingRate = 0.25;
constexpr double kMostReadingFactor = 100;
constexpr double kLayersRate = 0.05;
constexpr double kMostSurpriseOfLayers = 3;
constexpr double kMostLayersFactor = 4;

size_t nearest_point(const CostCurve& curve, int n_rows) {
  const auto& points = curve.points();
  size_t nearest = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    if (std::abs(points[i].n_rows - n_rows) <= std::abs(points[nearest].n_rows - n_rows)) nearest = i;
  }
  return nearest;
}

}  // namespace

PassCosts::PassCosts(Calibration first, Known known, std::function<int(int)> n_computed)
    : first_(std::move(first)),
      known_(known),
      n_computed_(std::move(n_computed)),
      corrections_(first_.curve.points().size()),
      learnt_(first_) {
  correct();
}

// With layers left out, rows cost about the same share as with all of them.
double PassCosts::pass_with(const LayerSet& layers, int n_context, int n_requests) const {
  const double one =
      blocks().of(layers) + attention(1, n_context) * layers.n_attention() / layers.n_layers();
  return one * pass(1, n_context, n_requests) / pass(1, n_context);
}

// The error is the rows' and attention's, by their shares of what was expected. Of the rows', what is
// not the machine's is their number's.
void PassCosts::observe(const SeenPass& seen) {
  if (known_ == Known::kGiven) return;
  const double of_rows = rows(seen.n_rows);
  const double of_attention = attention_of_all(seen.n_rows, seen.n_requests, seen.n_context);
  const double expected = of_rows + of_attention;
  const size_t at = nearest_point(first_.curve, n_computed_(seen.n_rows));
  Correction& correction = corrections_[at];
  seen_largest_ = seen_largest_ || at + 1 == corrections_.size();
  const bool is_first_of_guess = n_seen_++ == 0 && is_guess();
  const double most = is_first_of_guess ? kMostSurpriseOfGuess : kMostSurprise;
  const double surprise = std::log(std::clamp(seen.seconds / expected, 1 / most, most));
  const double share = expected / (of_rows * of_rows + of_attention * of_attention);
  const double error = surprise * share * of_rows;
  const double weight = is_guess() ? 0 : kFirstWeight;
  const double speed_rate = std::max(kSlowestSpeedRate, 1 / (weight + static_cast<double>(n_seen_)));
  machine_factor_ *= std::exp(speed_rate * error);
  for (Correction& other : corrections_) other.n_seen *= kKept;
  // What is known by now of this number of rows, from those near it, is where it begins.
  if (correction.n_seen == 0) correction.factor = smoothed(at);
  correction.n_seen = std::min(correction.n_seen + 1, kMostSeen);
  const double rate = 1 / (1 + weight + correction.n_seen);
  correction.factor *= std::exp(rate * (1 - speed_rate) * error);
  attention_factor_ = std::max(kLeastAttentionFactor,
                               attention_factor_ * std::exp(rate * surprise * share * of_attention));
  correct();
}

void PassCosts::observe_prompt(int n_rows, double seconds) {
  if (!is_guess() || n_rows < kShortestPrompt) return;
  auto& [fastest_rows, fastest_seconds] = fastest_prompt_;
  if (fastest_rows == 0 || seconds / n_rows < fastest_seconds / fastest_rows)
    fastest_prompt_ = {.n_rows = n_rows, .seconds = seconds};
  if (n_rows >= first_.curve.points().back().n_rows) prompt_row_seconds_ = seconds / n_rows;
  correct();
}

// What the rows of a prompt take tells what the rows of the largest pass are going to take, beside what
// a pass of one row takes: that is to read weights, which a prompt does once for more rows. It serves
// until drafts of that size are seen.
void PassCosts::follow_prompt() {
  if (prompt_row_seconds_ == 0 || seen_largest_) return;
  const int n_most = first_.curve.points().back().n_rows;
  Correction& last = corrections_.back();
  last.n_seen = 0;
  const double expected = seconds_of(0, smoothed(0)) + n_most * prompt_row_seconds_;
  last = {.factor = expected / seconds_of(corrections_.size() - 1, 1), .n_seen = kOfPrompt};
}

// What a further row takes at least where rows are computed one after the other: as much as a prompt's,
// until passes with few rows were seen to take less.
double PassCosts::least_of_row() const {
  const auto& [prompt_rows, prompt_seconds] = fastest_prompt_;
  if (known_ != Known::kGuessedRowByRow || prompt_rows == 0 || corrections_[0].n_seen <= 0) return 0;
  const auto& points = first_.curve.points();
  const auto seconds = [&](size_t i) { return seconds_of(i, corrections_[i].factor); };
  const double one = seconds(0);
  double least = (prompt_seconds - one) / (prompt_rows - 1);
  for (size_t i = 1; i < points.size(); ++i) {
    if (corrections_[i].n_seen < kSeen) continue;
    least = std::min(least, (seconds(i) - one) / (points[i].n_rows - 1));
  }
  return std::max(least, 0.0);
}

double PassCosts::seconds_of(size_t point, double factor) const {
  return machine_factor_ * first_.curve.points()[point].seconds * factor;
}

double PassCosts::expected_reading(int n_tokens, int n_context) const {
  const int n_before = n_context - n_tokens / 2;  // of those that are read, as many on average
  return pass(n_tokens, n_before) - pass(1, n_before);
}

void PassCosts::observe_reading(int n_tokens, int n_context, double seconds) {
  const double expected = expected_reading(n_tokens, n_context);
  if (known_ == Known::kGiven || expected <= 0) return;
  const double factor = std::clamp(seconds / expected, 1 / kMostReadingFactor, kMostReadingFactor);
  reading_factor_ += (n_readings_++ == 0 ? 1 : kReadingRate) * (factor - reading_factor_);
}

void PassCosts::observe_layers(const LayerSet& layers, int n_context, double seconds) {
  if (known_ == Known::kGiven) return;
  const double factor = std::clamp(seconds / pass_with(layers, n_context), 1 / kMostSurpriseOfLayers,
                                   kMostSurpriseOfLayers);
  layers_factor_ = std::clamp(layers_factor_ * std::pow(factor, kLayersRate), 1 / kMostLayersFactor,
                              kMostLayersFactor);
  correct();
}

// The mean of what was seen, in which a number of rows counts the less the further it is away: what is
// known of this one is not to be blurred by its neighbours, since their difference is what rows cost.
double PassCosts::smoothed(size_t point) const {
  const auto& points = first_.curve.points();
  double sum = 0, weights = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (corrections_[i].n_seen <= 0) continue;
    const double distance =
        std::abs(std::log2(static_cast<double>(points[i].n_rows) / points[point].n_rows));
    const double n_seen =
        i == point ? corrections_[i].n_seen : std::min(corrections_[i].n_seen, kMostOfOthers);
    const double weight = n_seen * std::exp2(-4 * distance);
    sum += weight * std::log(corrections_[i].factor);
    weights += weight;
  }
  return weights > 0 ? std::exp(sum / weights) : 1;
}

void PassCosts::correct() {
  follow_prompt();
  std::vector<CostPoint> points = first_.curve.points();
  const double of_row = least_of_row();
  for (size_t i = 0; i < points.size(); ++i) {
    auto& [n_rows, seconds, seconds_per_token] = points[i];
    seconds = seconds_of(i, smoothed(i));
    seconds_per_token *= attention_factor_;
    if (i == 0) continue;
    const double n_seen = corrections_[i].n_seen;
    if (of_row > 0 && n_seen < kSeen)
      seconds = std::max(seconds, points[0].seconds + (n_rows - 1) * of_row);
    if (is_guess()) seconds *= 1 - kOptimism / (1 + n_seen);
    // Further rows never make a pass shorter.
    seconds = std::max(seconds, points[i - 1].seconds);
  }
  learnt_ = {.curve = CostCurve(std::move(points)),
             .blocks = first_.blocks.scaled(machine_factor_ * smoothed(0) * layers_factor_)};
}

}  // namespace forerun
