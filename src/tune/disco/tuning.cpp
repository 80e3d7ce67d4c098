#include "tune/disco/tuning.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace forerun {
namespace {

struct Candidate {
  DiscoRule rule;
  double log_seconds = 0;  // of all texts so far
};

std::vector<Candidate> all_of(const TuningOptions& options) {
  std::vector<Candidate> candidates;
  for (const int length : options.lengths) {
    for (const double threshold : options.thresholds) {
      candidates.push_back({.rule = {.threshold = threshold, .max_tokens = length}});
    }
  }
  return candidates;
}

int n_rounds(size_t n_candidates) {
  int n = 0;
  for (; n_candidates > 1; n_candidates = (n_candidates + 1) / 2) ++n;
  return n;
}

}  // namespace

DiscoRule tune_disco(size_t n_texts, const std::function<double(const DiscoRule&, size_t text)>& seconds,
                     const TuningOptions& options) {
  CHECK(n_texts > 0);
  std::vector<Candidate> candidates = all_of(options);
  CHECK(!candidates.empty());
  const int n_all = n_rounds(candidates.size());
  size_t text = 0;
  for (int round = 0; round < n_all; ++round) {
    const size_t n_answers =
        std::max<size_t>(1, static_cast<size_t>(options.n_answers) / candidates.size());
    for (size_t answer = 0; answer < n_answers; ++answer, ++text) {
      for (size_t i = 0; i < candidates.size(); ++i) {
        if (options.is_cancelled && options.is_cancelled()) return candidates.front().rule;
        // Each text begins with another candidate, so that none is always first.
        Candidate& candidate = candidates[(i + text) % candidates.size()];
        candidate.log_seconds += std::log(std::max(seconds(candidate.rule, text % n_texts), 1e-9));
      }
      if (options.progress) {
        const double of_round = static_cast<double>(answer + 1) / static_cast<double>(n_answers);
        options.progress((round + of_round) / n_all);
      }
    }
    std::ranges::stable_sort(candidates, {}, &Candidate::log_seconds);
    candidates.resize((candidates.size() + 1) / 2);
  }
  return candidates.front().rule;
}

}  // namespace forerun
