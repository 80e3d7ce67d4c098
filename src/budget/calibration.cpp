#include "budget/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/cache_folder.h"
#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/median.h"
#include "core/replace_file.h"
#include "core/stopwatch.h"
#include "core/version.h"
#include "model/own_sequence.h"
#include "model/scratch_guard.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Raised when what is measured, or how, changes.
constexpr int kVersion = 4;
constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64};
// With a slow model fewer row counts must do.
constexpr int kFewRowCounts[] = {1, 2, 4, 8, 16, 32};
constexpr double kSlowPass = 0.1;
constexpr int kRounds = 5;
constexpr int kShortContext = 32;
constexpr int kLongContext = 2048;

// A sequence of the cache, with text that was never computed: only its length counts.
class FilledSequence {
 public:
  FilledSequence(KvCells& cells, int n_tokens) : sequence_(cells) {
    std::vector<NodeId> path;
    for (int i = 0; i < n_tokens; ++i) {
      path.push_back(
          cells.extend(id(), path.empty() ? std::nullopt : std::optional(path.back())).value());
    }
    cells.commit(id(), path);
  }
  SequenceId id() const { return sequence_.id(); }

 private:
  OwnSequence sequence_;
};

double time_pass(Executor& executor, SequenceId sequence, int n_rows,
                 const std::optional<LayerSet>& layers = std::nullopt) {
  const ScratchGuard guard(executor.cells(), sequence);
  Pass pass;
  pass.layers = layers;
  for (int i = 0; i < n_rows; ++i) {
    const auto parent = pass.rows.empty() ? std::nullopt : std::optional(pass.rows.back().node);
    pass.rows.push_back({.sequence = sequence,
                         .node = executor.cells().extend(sequence, parent).value(),
                         .token = TokenId{(17 * i + 5) % executor.model().config().n_vocab},
                         .logits = true});
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

Calibration calibrate(Executor& executor, const CalibrationOptions& options) {
  const int n_free = executor.cells().n_free();
  const int max_rows =
      std::min({options.max_rows, executor.max_rows(), std::max(1, (n_free - kShortContext) / 4)});
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
  const auto measure = [&](SequenceId sequence) {
    std::vector<std::vector<double>> times(counts.size());
    for (int round = 0; round <= n_rounds; ++round) {
      for (size_t i = 0; i < counts.size(); ++i) {
        if (!is_slow) time_pass(executor, sequence, counts[i]);
        const double seconds = time_pass(executor, sequence, counts[i]);
        if (round > 0 || is_slow) times[i].push_back(seconds);
      }
      ++n_done;
      if (options.progress) options.progress(n_done / (2.0 * (n_rounds + 1)));
    }
    std::vector<double> medians;
    for (const auto& of_count : times) medians.push_back(median(of_count));
    return without_outliers(counts, std::move(medians));
  };
  const std::vector<double> near_seconds = measure(near.id());
  const std::vector<double> far_seconds = measure(far.id());
  std::vector<CostPoint> points;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double slope = (far_seconds[i] - near_seconds[i]) / (n_long - kShortContext);
    points.push_back(
        {.n_rows = counts[i], .seconds = near_seconds[i], .seconds_per_token = std::max(0.0, slope)});
  }
  return {.curve = CostCurve(std::move(points)), .blocks = calibrate_blocks(executor, n_rounds)};
}

std::string calibration_key(Executor& executor) {
  const Device& device = executor.model().device();
  StableHash hash;
  hash.add(executor.model().fingerprint());
  hash.add(device.info().name);
  hash.add(device.info().description);
  hash.add(static_cast<uint64_t>(device.n_threads()));
  hash.add(device.kernels() != nullptr ? device.kernels()->name : "");
  hash.add(ggml_type_name(executor.cache().keys(0)->type));
  hash.add(executor.min_rows());
  hash.add(kVersionText);
  return fmt::format("{:016x}", hash.value());
}

std::filesystem::path calibration_folder() {
  return cache_folder() / "calibration";
}

std::optional<Calibration> load_calibration(const std::filesystem::path& folder,
                                            const std::string& key) {
  std::ifstream stream(folder / (key + ".json"));
  const Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("version", Json()) != Json(kVersion)) return std::nullopt;
  const Json list = json.value("points", Json());
  std::vector<CostPoint> points;
  for (const Json& entry : list.is_array() ? list : Json::array()) {
    if (!entry.is_array() || entry.size() != 3) return std::nullopt;
    for (const Json& number : entry) {
      if (!number.is_number()) return std::nullopt;
    }
    const CostPoint point{.n_rows = entry[0].get<int>(),
                          .seconds = entry[1].get<double>(),
                          .seconds_per_token = entry[2].get<double>()};
    const bool ascending = points.empty() ? point.n_rows > 0 : point.n_rows > points.back().n_rows;
    if (!ascending || !(point.seconds > 0) || !(point.seconds_per_token >= 0)) return std::nullopt;
    points.push_back(point);
  }
  const Json blocks = json.value("blocks", Json());
  const auto block = [&](const char* name) {
    const Json seconds = blocks.is_object() ? blocks.value(name, Json()) : Json();
    return seconds.is_number() ? seconds.get<double>() : -1;
  };
  const BlockCosts costs{.attention = block("attention"), .mlp = block("mlp"), .rest = block("rest")};
  if (points.empty() || costs.attention < 0 || costs.mlp < 0 || costs.rest < 0) return std::nullopt;
  return Calibration{.curve = CostCurve(std::move(points)), .blocks = costs};
}

void save_calibration(const std::filesystem::path& folder, const std::string& key,
                      const Calibration& calibration) {
  Json points = Json::array();
  for (const CostPoint& point : calibration.curve.points()) {
    points.push_back({point.n_rows, point.seconds, point.seconds_per_token});
  }
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const BlockCosts& blocks = calibration.blocks;
  const Json json{
      {"version", kVersion},
      {"points", points},
      {"blocks", {{"attention", blocks.attention}, {"mlp", blocks.mlp}, {"rest", blocks.rest}}}};
  replace_file(folder / (key + ".json"), json.dump() + "\n");
}

namespace {

// Where texts leave no room in the cache, in one of its own.
Calibration calibrate_somewhere(Executor& executor, const CalibrationOptions& options) {
  constexpr int kEnoughCells = 512;
  if (executor.cells().n_free() >= kEnoughCells) return calibrate(executor, options);
  Executor own(executor.shared_model(),
               {.kv = {.n_cells = kEnoughCells, .type = executor.cache().type()},
                .max_rows = executor.max_rows(),
                .min_rows = executor.min_rows()});
  return calibrate(own, options);
}

}  // namespace

Calibration calibrated(Executor& executor, const CalibrationOptions& options) {
  const std::string key = calibration_key(executor);
  if (auto kept = load_calibration(calibration_folder(), key)) return std::move(*kept);
  Calibration calibration = calibrate_somewhere(executor, options);
  try {
    save_calibration(calibration_folder(), key, calibration);
  } catch (const Error&) {
    // A folder that cannot be written costs a second the next time, nothing more.
  }
  return calibration;
}

std::function<const Calibration&()> calibrated_if_asked(Executor& executor,
                                                        const CalibrationOptions& options) {
  const auto kept = std::make_shared<std::optional<Calibration>>();
  return [&executor, options, kept]() -> const Calibration& {
    return *kept ? **kept : kept->emplace(calibrated(executor, options));
  };
}

}  // namespace forerun
