#include "cost/calibration.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/median.h"
#include "core/stopwatch.h"
#include "cost/guessed_costs.h"
#include "model/own_sequence.h"
#include "model/scratch_guard.h"

namespace forerun {
namespace {

// With a slow model fewer row counts must do.
constexpr int kFewRowCounts[] = {1, 2, 4, 8, 16, 32};
constexpr double kSlowPass = 0.1;
constexpr int kRounds = 5;
constexpr int kMostRows = 128;
constexpr int kShortContext = 32;
constexpr int kLongContext = 2048;

// A sequence of the cache, with text that was never computed: only its length counts.
struct FilledSequence : OwnSequence {
  FilledSequence(KvCells& cells, int n_tokens) : OwnSequence(cells) {
    cells.commit(id(), cells.extend_chain(id(), n_tokens));
  }
};

double time_pass(Executor& executor, SequenceId sequence, int n_rows,
                 const std::optional<LayerSet>& layers = std::nullopt) {
  const ScratchGuard guard(executor.cells(), sequence);
  Pass pass;
  pass.layers = layers;
  for (const NodeId node : executor.cells().extend_chain(sequence, n_rows)) {
    pass.rows.push_back({.sequence = sequence,
                         .node = node,
                         .token = TokenId{(17 * to_int(node) + 5) % executor.model().config().n_vocab},
                         .logits = true,
                         .best_do = true});
  }
  const Stopwatch watch;
  executor.forward(pass);
  return watch.seconds();
}

// From passes with all blocks, with one kind of them and with none.
BlockCosts calibrate_blocks(Executor& executor, int n_rounds) {
  const int n_layers = executor.model().config().n_layers;
  LayerSet attention = LayerSet::none(n_layers);
  LayerSet mlp = LayerSet::none(n_layers);
  for (int layer = 0; layer < n_layers; ++layer) {
    attention.set(attention_block(layer), true);
    mlp.set(mlp_block(layer), true);
  }
  const std::array<LayerSet, 3> sets{LayerSet::none(n_layers), attention, mlp};
  const FilledSequence sequence(executor.cells(), kShortContext);
  std::array<std::vector<double>, 3> times;
  for (int round = 0; round <= n_rounds; ++round) {
    for (size_t i = 0; i < sets.size(); ++i) {
      time_pass(executor, sequence.id(), 1, sets[i]);
      const double seconds = time_pass(executor, sequence.id(), 1, sets[i]);
      if (round > 0) times[i].push_back(seconds);
    }
  }
  const double rest = median(times[0]);
  return {.attention = std::max(0.0, median(times[1]) - rest) / n_layers,
          .mlp = std::max(0.0, median(times[2]) - rest) / n_layers,
          .rest = rest};
}

Calibration measure(Executor& executor, const std::function<void(double)>& progress) {
  const int n_free = executor.cells().n_free();
  const int max_rows =
      std::min({kMostRows, executor.max_rows(), std::max(1, (n_free - kShortContext) / 4)});
  const int n_long = std::min(kLongContext, (n_free - max_rows) / 2);
  CHECK(n_long > kShortContext);
  const FilledSequence near(executor.cells(), kShortContext);
  const FilledSequence far(executor.cells(), n_long);
  for (int i = 0; i < 2; ++i) time_pass(executor, near.id(), 1);  // the first builds the graph
  const bool is_slow = time_pass(executor, near.id(), 1) > kSlowPass;

  std::vector<int> counts;
  for (const int n : is_slow ? std::span<const int>(kFewRowCounts) : std::span<const int>(kRowCounts)) {
    if (n <= max_rows) counts.push_back(n);
  }
  // Round after round over all row counts, so that a disturbance does not hit one alone;
  // each twice in a row, the first to bring the caches into the state that a run of such
  // passes has, and contexts apart, since a long one fills them. The first round also
  // builds the graphs.
  const int n_rounds = is_slow ? 2 : kRounds;
  int n_done = 0;
  const auto medians_of = [&](SequenceId sequence) {
    std::vector<std::vector<double>> times(counts.size());
    for (int round = 0; round <= n_rounds; ++round) {
      for (size_t i = 0; i < counts.size(); ++i) {
        if (!is_slow) time_pass(executor, sequence, counts[i]);
        const double seconds = time_pass(executor, sequence, counts[i]);
        if (round > 0 || is_slow) times[i].push_back(seconds);
      }
      ++n_done;
      if (progress) progress(n_done / (2.0 * (n_rounds + 1)));
    }
    std::vector<double> medians;
    for (const auto& of_count : times) medians.push_back(median(of_count));
    return without_outliers(counts, std::move(medians));
  };
  const std::vector<double> near_seconds = medians_of(near.id());
  const std::vector<double> far_seconds = medians_of(far.id());
  std::vector<CostPoint> points;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double slope = (far_seconds[i] - near_seconds[i]) / (n_long - kShortContext);
    points.push_back(
        {.n_rows = counts[i], .seconds = near_seconds[i], .seconds_per_token = std::max(0.0, slope)});
  }
  return {.curve = CostCurve(std::move(points)),
          .blocks = executor.model().has_blocks() ? calibrate_blocks(executor, n_rounds)
                                                  : guess_costs(executor).blocks};
}

}  // namespace

std::vector<double> without_outliers(std::span<const int> n_rows, std::vector<double> seconds) {
  CHECK(n_rows.size() == seconds.size());
  for (size_t i = seconds.size(); i-- > 1;) seconds[i - 1] = std::min(seconds[i - 1], seconds[i]);
  for (size_t i = 1; i < seconds.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int n_passes = (n_rows[i] + n_rows[j] - 1) / n_rows[j];
      seconds[i] = std::min(seconds[i], n_passes * seconds[j]);
    }
  }
  return seconds;
}

Calibration calibrate(Executor& executor, const std::function<void(double)>& progress) {
  constexpr int kEnoughCells = 512;
  if (executor.cells().n_free() >= kEnoughCells) return measure(executor, progress);
  Executor own(executor.shared_model(), {.kv = {.n_cells = kEnoughCells, .type = executor.kv_type()},
                                         .max_rows = executor.max_rows(),
                                         .min_rows = executor.min_rows()});
  return measure(own, progress);
}

}  // namespace forerun
