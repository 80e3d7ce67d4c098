// forerun calibrate: what passes of the model cost on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "budget/calibration.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "engine/loaded_model.h"

namespace forerun {
namespace {

struct CalibrateOptions {
  ModelOptions model;
  bool json = false;
};

constexpr int kContext = 4096;

void print_table(const Calibration& calibration) {
  const CostCurve& curve = calibration.curve;
  double longest = 0;
  for (const CostPoint& point : curve.points()) longest = std::max(longest, point.seconds);
  std::printf("%6s %10s %8s %22s\n", "rows", "ms", "of one", "ms per 1,000 context");
  for (const CostPoint& point : curve.points()) {
    const auto width = static_cast<size_t>(40 * point.seconds / longest + 0.5);
    std::printf("%6d %10.2f %8.2f %22.2f  %s\n", point.n_rows, 1e3 * point.seconds,
                point.seconds / curve.rows(1), 1e6 * point.seconds_per_token,
                std::string(width, '#').c_str());
  }
  const BlockCosts& blocks = calibration.blocks;
  std::printf("\none row: attention %.3f ms and MLP %.3f ms per layer, the rest %.3f ms\n",
              1e3 * blocks.attention, 1e3 * blocks.mlp, 1e3 * blocks.rest);
}

void calibrate_command(const CalibrateOptions& options) {
  const EngineOptions engine = engine_options(options.model, {});
  const LoadedModel loaded = load_model(resolve_model(options.model.model), options.model.device,
                                        [&](double share) { engine.progress("loading", share); });
  const int n_context = options.model.n_context > 0 ? options.model.n_context : kContext;
  Executor executor(loaded.model,
                    {.kv = {.n_cells = n_context, .type = kv_type_named(options.model.kv_type)}});
  const Calibration calibration = calibrate(
      executor, {.progress = [&](double share) { engine.progress("measuring this machine", share); }});
  const std::string key = calibration_key(executor);
  save_calibration(calibration_folder(), key, calibration);
  if (!options.json) return print_table(calibration);
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const CostPoint& point : calibration.curve.points()) {
    points.push_back({{"rows", point.n_rows},
                      {"ms", 1e3 * point.seconds},
                      {"ms_per_1000_context", 1e6 * point.seconds_per_token}});
  }
  const BlockCosts& blocks = calibration.blocks;
  print_json({{"key", key},
              {"points", points},
              {"attention_ms", 1e3 * blocks.attention},
              {"mlp_ms", 1e3 * blocks.mlp},
              {"rest_ms", 1e3 * blocks.rest}});
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure what passes cost here, which decides how much is drafted, and keep it");
  add_model_options(*command, options->model);
  add_context_options(*command, options->model);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { calibrate_command(*options); });
}

}  // namespace forerun
