#include "sampling/vocab_ops.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "core/check.h"
#include "sampling/cpu_clones.h"
#include "sampling/ieee_math.h"

namespace forerun {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Loops keep this many independent partial results, so that any vector width up to
// it does the same operations in the same order.
constexpr size_t kLanes = 16;

// Logits per block, the unit that argmax and the selections skip over: as many as this,
// but for a top-k that needs many blocks fewer.
constexpr size_t kBlock = 256;
constexpr size_t kSmallestBlock = 32;

// Not std::max: a NaN x must lose, and this form is one vector instruction.
[[gnu::always_inline]] inline float larger(float x, float best) {
  return x > best ? x : best;
}

// Largest of n values. Four values per vector are native to every CPU; eight running
// maxima hide the latency of the comparison, so that memory sets the speed.
[[gnu::always_inline]] inline float max_of(const float* x, size_t n) {
  using Vector = float __attribute__((vector_size(16)));
  constexpr size_t kWidth = 4;
  constexpr size_t kRunning = 8;
  Vector best[kRunning];
  for (Vector& b : best) b = Vector{} - kInf;
  size_t i = 0;
  for (; i + kRunning * kWidth <= n; i += kRunning * kWidth) {
    for (size_t j = 0; j < kRunning; ++j) {
      Vector v;
      std::memcpy(&v, x + i + j * kWidth, sizeof(v));
      best[j] = v > best[j] ? v : best[j];
    }
  }
  for (size_t half = kRunning / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) best[j] = best[j + half] > best[j] ? best[j + half] : best[j];
  }
  float result = -kInf;
  for (size_t j = 0; j < kWidth; ++j) result = larger(best[0][j], result);
  for (; i < n; ++i) result = larger(x[i], result);
  return result;
}

// The largest of each whole block of a multiple of 32.
FORERUN_CPU_CLONES void whole_block_maxima(const float* x, size_t n_blocks, size_t block, float* out) {
  using Vector = float __attribute__((vector_size(4 * kLanes)));
  using Half = float __attribute__((vector_size(2 * kLanes)));
  using Quarter = float __attribute__((vector_size(kLanes)));
  static_assert(kSmallestBlock % (2 * kLanes) == 0);
  for (size_t first = 0; n_blocks > 0; --n_blocks, first += block) {
    Vector best[2] = {Vector{} - kInf, Vector{} - kInf};
    for (size_t i = first; i < first + block; i += 2 * kLanes) {
      for (size_t j = 0; j < 2; ++j) {
        Vector v;
        std::memcpy(&v, x + i + j * kLanes, sizeof(v));
        best[j] = v > best[j] ? v : best[j];
      }
    }
    const Vector all = best[0] > best[1] ? best[0] : best[1];
    Half half[2];
    std::memcpy(half, &all, sizeof(all));
    const Half of_half = half[0] > half[1] ? half[0] : half[1];
    Quarter quarter[2];
    std::memcpy(quarter, &of_half, sizeof(of_half));
    const Quarter of_quarter = quarter[0] > quarter[1] ? quarter[0] : quarter[1];
    *out++ = std::max(std::max(of_quarter[0], of_quarter[1]), std::max(of_quarter[2], of_quarter[3]));
  }
}

void block_maxima(std::span<const float> logits, size_t block, std::vector<float>& out) {
  const size_t n_whole = logits.size() / block;
  out.resize(n_whole);
  whole_block_maxima(logits.data(), n_whole, block, out.data());
  const auto rest = logits.subspan(n_whole * block);
  if (!rest.empty()) out.push_back(max_of(rest.data(), rest.size()));
}

FORERUN_CPU_CLONES int count_excluded(const float* x, size_t n) {
  int count = 0;
  for (size_t i = 0; i < n; ++i) count += x[i] > -kInf ? 0 : 1;
  return count;
}

FORERUN_CPU_CLONES void clean_all(const float* x, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = clean(x[i]);
}

[[gnu::always_inline]] inline float scaled_exp(float x, float max, float temperature) {
  return ieee::exp_nonpositive((larger(x, -kInf) - max) / temperature);
}

// Sums of kSumGroup values stay in single precision; those go into the double.
constexpr size_t kSumGroup = 16 * kLanes;

[[gnu::always_inline]] inline float lane_sum(float (&lane)[kLanes]) {
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
}

FORERUN_CPU_CLONES double exp_total(const float* x, size_t n, float max, float temperature) {
  double total = 0;
  size_t i = 0;
  for (; i + kSumGroup <= n; i += kSumGroup) {
    float lane[kLanes] = {};
    for (size_t k = 0; k < kSumGroup; k += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) lane[j] += scaled_exp(x[i + k + j], max, temperature);
    }
    total += static_cast<double>(lane_sum(lane));
  }
  for (; i < n; ++i) total += static_cast<double>(scaled_exp(x[i], max, temperature));
  return total;
}

// x - max, as far as exp_nonpositive() is not 0, of a clean(x).
[[gnu::always_inline]] inline float below_max(float x, float max) {
  const float below = larger(x - max, -88.0f);
  return below < 0 ? below : 0;
}

// The sums of exp(x - max) and of (max - x) * exp(x - max).
FORERUN_CPU_CLONES void softmax_totals(const float* x, size_t n, float max, double* total,
                                       double* weighted) {
  size_t i = 0;
  for (; i + kSumGroup <= n; i += kSumGroup) {
    float lane[kLanes] = {}, weighted_lane[kLanes] = {};
    for (size_t k = 0; k < kSumGroup; k += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) {
        const float below = below_max(x[i + k + j], max);
        const float e = ieee::exp_nonpositive(below);
        lane[j] += e;
        weighted_lane[j] -= below * e;
      }
    }
    *total += static_cast<double>(lane_sum(lane));
    *weighted += static_cast<double>(lane_sum(weighted_lane));
  }
  for (; i < n; ++i) {
    const float below = below_max(x[i], max);
    const float e = ieee::exp_nonpositive(below);
    *total += static_cast<double>(e);
    *weighted -= static_cast<double>(below * e);
  }
}

FORERUN_CPU_CLONES void scale_and_shift(const float* x, size_t n, float max, float temperature,
                                        float log_total, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = (larger(x[i], -kInf) - max) / temperature - log_total;
}

// Empties a buffer and gives it its final capacity the first time, so that no later
// call allocates; memory that is never written costs only addresses.
void start(std::vector<ScoredToken>& buffer, size_t capacity) {
  buffer.clear();
  buffer.reserve(capacity);
}

// Of a few thousand logits a few dozen: most parts of kSmallestBlock have none.
void append_at_least(std::span<const float> logits, size_t first, size_t n, float threshold,
                     std::vector<ScoredToken>& out) {
  for (const size_t end = first + n; first < end; first += kSmallestBlock) {
    const size_t part_end = std::min(first + kSmallestBlock, end);
    if (max_of(logits.data() + first, part_end - first) < threshold) continue;
    for (size_t i = first; i < part_end; ++i) {
      if (logits[i] >= threshold && logits[i] > -kInf) {
        out.push_back({logits[i], TokenId{static_cast<int32_t>(i)}});
      }
    }
  }
}

// Buckets of select_mass: 32 nats below the largest logit in equal steps, and the rest.
constexpr size_t kBuckets = 4096;

size_t bucket_of(float logit, float max) {
  return static_cast<size_t>(std::min((max - logit) * (kBuckets / 32), float{kBuckets - 1}));
}

}  // namespace

std::optional<TokenId> argmax(std::span<const float> logits) {
  float best = -kInf;
  size_t best_first = 0;
  for (size_t first = 0; first < logits.size(); first += kBlock) {
    const float block_best = max_of(logits.data() + first, std::min(kBlock, logits.size() - first));
    if (block_best > best) {
      best = block_best;
      best_first = first;
    }
  }
  if (best == -kInf) return std::nullopt;
  const auto it =
      std::find(logits.begin() + static_cast<std::ptrdiff_t>(best_first), logits.end(), best);
  return TokenId{static_cast<int32_t>(it - logits.begin())};
}

float largest(std::span<const float> logits) {
  return max_of(logits.data(), logits.size());
}

bool has_excluded(std::span<const float> logits) {
  return count_excluded(logits.data(), logits.size()) > 0;
}

std::span<const float> fit_logits(std::span<const float> logits, size_t n, std::vector<float>& memory) {
  if (logits.size() >= n) return logits.first(n);
  memory.assign(n, -kInf);
  std::ranges::copy(logits, memory.begin());
  return memory;
}

void copy_clean(std::span<const float> logits, std::vector<float>& out) {
  out.resize(logits.size());
  clean_all(logits.data(), logits.size(), out.data());
}

// The k-th largest block maximum is a lower bound of the k-th largest logit, and only
// k blocks (more if logits tie) reach it: nothing else needs a second look.
void select_top(std::span<const float> logits, size_t k, SelectionScratch& scratch,
                std::vector<ScoredToken>& out) {
  CHECK(k > 0);
  size_t block = kBlock;
  while (block > kSmallestBlock && logits.size() / block < 4 * k) block /= 2;
  auto& block_max = scratch.block_max;
  block_maxima(logits, block, block_max);
  float threshold = -kInf;
  if (k <= block_max.size()) {
    auto& ranked = scratch.ranked;
    ranked.assign(block_max.begin(), block_max.end());
    const auto kth = ranked.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(ranked.begin(), kth, ranked.end(), std::greater<>());
    threshold = *kth;
  }
  start(out, logits.size());
  for (size_t b = 0; b < block_max.size(); ++b) {
    if (block_max[b] < threshold) continue;
    append_at_least(logits, b * block, std::min(block, logits.size() - b * block), threshold, out);
  }
  if (k < out.size()) {
    std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(k - 1), out.end());
    out.resize(k);
  }
  std::sort(out.begin(), out.end());
}

void select_at_least(std::span<const float> logits, float threshold, std::vector<ScoredToken>& out) {
  start(out, logits.size());
  for (size_t first = 0; first < logits.size(); first += kBlock) {
    const size_t n = std::min(kBlock, logits.size() - first);
    if (largest(logits.subspan(first, n)) >= threshold)
      append_at_least(logits, first, n, threshold, out);
  }
}

// A histogram of the mass over logits says in which bucket the beginning ends; only
// that one is sorted.
void select_mass(std::span<const float> logits, const MassTarget& target, SelectionScratch& scratch,
                 std::vector<ScoredToken>& out) {
  const auto exp_of = [&](float logit) {
    return static_cast<double>(ieee::exp_nonpositive(logit - target.max));
  };
  auto& mass = scratch.mass;
  mass.assign(kBuckets, 0.0);
  for (float logit : logits) {
    if (logit > -kInf) mass[bucket_of(logit, target.max)] += exp_of(logit);
  }
  double sum = 0;
  size_t last = 0;
  while (last + 1 < kBuckets && !target.is_reached(sum + mass[last])) sum += mass[last++];

  auto& edge = scratch.edge;
  start(edge, logits.size());
  start(out, logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > -kInf)) continue;
    const size_t bucket = bucket_of(logits[i], target.max);
    if (bucket > last) continue;
    (bucket < last ? out : edge).push_back({logits[i], TokenId{static_cast<int32_t>(i)}});
  }
  std::sort(edge.begin(), edge.end());
  for (const ScoredToken& candidate : edge) {
    out.push_back(candidate);
    sum += exp_of(candidate.logit);
    if (target.is_reached(sum)) break;
  }
}

double sum_exp(std::span<const float> logits, float max, float temperature) {
  return exp_total(logits.data(), logits.size(), max, temperature);
}

SoftmaxSums softmax_sums(std::span<const float> logits) {
  SoftmaxSums sums{.max = clean(largest(logits))};
  double weighted = 0;
  softmax_totals(logits.data(), logits.size(), sums.max, &sums.total, &weighted);
  sums.entropy = ieee::log(sums.total) + weighted / sums.total;
  return sums;
}

double SoftmaxSums::probability(float logit) const {
  return static_cast<double>(ieee::exp_nonpositive(clean(logit) - max)) / total;
}

double probability_of(TokenId token, std::span<const float> logits) {
  const float max = largest(logits);
  const float logit = clean(logits[static_cast<size_t>(to_int(token))]);
  return static_cast<double>(ieee::exp_nonpositive(logit - max)) / sum_exp(logits, max, 1.0f);
}

void log_softmax(std::span<const float> logits, float max, float temperature, std::span<float> out) {
  CHECK(out.size() == logits.size());
  const auto log_total = static_cast<float>(ieee::log(sum_exp(logits, max, temperature)));
  scale_and_shift(logits.data(), logits.size(), max, temperature, log_total, out.data());
}

}  // namespace forerun
