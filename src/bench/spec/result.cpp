#include "bench/spec/result.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace forerun {
namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// 95 % of resampled sets of prompts have a ratio of sums in here.
Interval bootstrap(const std::vector<double>& above, const std::vector<double>& below) {
  constexpr int kResamples = 2000;
  std::mt19937 random(1);
  std::vector<double> ratios;
  for (int i = 0; i < kResamples; ++i) {
    double a = 0, b = 0;
    for (size_t k = 0; k < above.size(); ++k) {
      const size_t chosen = random() % above.size();
      a += above[chosen];
      b += below[chosen];
    }
    ratios.push_back(b > 0 ? a / b : 0);
  }
  std::sort(ratios.begin(), ratios.end());
  return {.low = ratios[kResamples / 40], .high = ratios[kResamples - 1 - kResamples / 40]};
}

// Two programs round differently, so their texts part and may differ in length: what
// `reference` would have taken for as many tokens as `run` has.
double scaled_ms(const SpecRun& reference, const SpecRun& run) {
  if (reference.tokens.empty() || run.tokens.empty()) return reference.decode_ms;
  return reference.decode_ms * static_cast<double>(run.tokens.size()) /
         static_cast<double>(reference.tokens.size());
}

// Decode times of two methods per prompt, to be compared.
struct TimePairs {
  std::vector<double> reference;
  std::vector<double> own;

  void add(double reference_ms, double own_ms) {
    reference.push_back(reference_ms);
    own.push_back(own_ms);
  }
  SpeedRatio ratio() const {
    const double own_ms = sum_of(own);
    if (own_ms <= 0) return {};
    return {.value = sum_of(reference) / own_ms, .interval = bootstrap(reference, own)};
  }
};

}  // namespace

void share_time(std::span<SpecAnswer> answers, const TurnTime& time) {
  double all_ms = 0;
  for (const SpecAnswer& answer : answers) all_ms += answer.run.decode_ms;
  const auto n = static_cast<double>(answers.size());
  for (SpecAnswer& answer : answers) {
    const double share = all_ms > 0 ? answer.run.decode_ms / all_ms : 1 / n;
    answer.run.prompt_ms = time.prompt_ms / n;
    answer.run.decode_ms = time.decode_ms * share;
  }
}

void SpecRun::add(const SpecRun& other) {
  tokens.insert(tokens.end(), other.tokens.begin(), other.tokens.end());
  origins.insert(origins.end(), other.origins.begin(), other.origins.end());
  logprobs.insert(logprobs.end(), other.logprobs.begin(), other.logprobs.end());
  prompt_ms += other.prompt_ms;
  decode_ms += other.decode_ms;
  drafts.add(other.drafts);
  speculation.add(other.speculation);
  steps.insert(steps.end(), other.steps.begin(), other.steps.end());
}

std::vector<std::string> SpecBenchResult::categories() const {
  std::vector<std::string> names;
  for (const BenchPrompt& prompt : prompts) {
    if (std::find(names.begin(), names.end(), prompt.category) == names.end()) {
      names.push_back(prompt.category);
    }
  }
  return names;
}

SpecSummary SpecBenchResult::summary(size_t method, const std::optional<std::string>& category) const {
  SpecSummary summary;
  TimePairs times;
  double plain_total = 0, own_total = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (category && prompts[i].category != *category) continue;
    const SpecRun& plain = runs[0][i];
    const SpecRun& run = runs[method][i];
    const double plain_ms = is_peer(method) ? scaled_ms(plain, run) : plain.decode_ms;
    ++summary.n_prompts;
    summary.n_identical += is_identical(method, i) ? 1 : 0;
    summary.n_tokens += static_cast<int64_t>(run.tokens.size());
    summary.drafts.add(run.drafts);
    summary.speculation.add(run.speculation);
    times.add(plain_ms, run.decode_ms);
    plain_total += plain_ms + plain.prompt_ms;
    own_total += run.decode_ms + run.prompt_ms;
  }
  const double own_ms = sum_of(times.own);
  if (own_ms <= 0) return summary;
  const SpeedRatio ratio = times.ratio();
  summary.speedup = ratio.value;
  summary.speedup_interval = ratio.interval;
  summary.speedup_total = plain_total / own_total;
  summary.tokens_per_second = 1e3 * static_cast<double>(summary.n_tokens) / own_ms;
  summary.draft_share = summary.speculation.draft_ms / own_ms;
  summary.pass_share = summary.speculation.pass_ms / own_ms;
  summary.sample_share = summary.speculation.sample_ms / own_ms;
  return summary;
}

std::optional<PeerComparison> SpecBenchResult::against_peers() const {
  if (n_peers == 0 || prompts.empty()) return std::nullopt;
  std::vector<double> speedups;
  for (size_t m = 0; m < methods.size(); ++m) speedups.push_back(summary(m).speedup);
  const auto fastest = [&](size_t first, size_t last) {
    const auto begin = speedups.begin();
    const auto found = std::max_element(begin + static_cast<std::ptrdiff_t>(first),
                                        begin + static_cast<std::ptrdiff_t>(last));
    return static_cast<size_t>(found - begin);
  };
  PeerComparison comparison{
      .own = fastest(0, n_own()), .peer = fastest(n_own(), methods.size()), .speed = {}};
  TimePairs times;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const SpecRun& own = runs[comparison.own][i];
    times.add(scaled_ms(runs[comparison.peer][i], own), own.decode_ms);
  }
  comparison.speed = times.ratio();
  return comparison;
}

}  // namespace forerun
