// forerun calibrate: what passes of the model cost on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cost/known_costs.h"
#include "engine/loaded_model.h"

namespace forerun {
namespace {

struct CalibrateOptions {
  ModelOptions model;
  bool json = false;
};

constexpr int kContext = 4096;

// More for each token of context in one layer's attention: what KnapSpec weighs blocks by.
double seconds_per_token(const Calibration& calibration, int n_layers) {
  return calibration.curve.attention(1, 1) / n_layers;
}

void print_table(const Calibration& calibration, int n_layers) {
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
  const double per_token = seconds_per_token(calibration, n_layers);
  std::printf(
      "\none row of one layer behind c tokens: attention %.3f + %.3f c / 1,000 ms, MLP %.3f ms; the "
      "rest of a pass %.3f ms\n",
      1e3 * blocks.attention, 1e6 * per_token, 1e3 * blocks.mlp, 1e3 * blocks.rest);
  if (per_token > 0 && blocks.attention < blocks.mlp) {
    std::printf("attention costs more than the MLP from %.0f tokens on\n",
                (blocks.mlp - blocks.attention) / per_token);
  }
}

void calibrate_command(const CalibrateOptions& options) {
  const EngineOptions engine = engine_options(options.model, {});
  DeviceOptions device = options.model.device;
  device.kv_type = kv_type_named(options.model.kv_type);
  const LoadedModel loaded = load_model(resolve_model(engine.model), device,
                                        [&](double share) { engine.progress("loading", share); });
  const int n_context = options.model.n_context > 0 ? options.model.n_context : kContext;
  Executor executor(loaded.model, {.kv = {.n_cells = n_context, .type = device.kv_type}});
  const Calibration calibration =
      calibrate(executor, [&](double share) { engine.progress("measuring this machine", share); });
  const CostKey key = CostKey::of(executor);
  save_costs(calibration_folder(), key, calibration);
  const int n_layers = loaded.model->config().n_layers;
  if (!options.json) return print_table(calibration, n_layers);
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const CostPoint& point : calibration.curve.points()) {
    points.push_back({{"rows", point.n_rows},
                      {"ms", 1e3 * point.seconds},
                      {"ms_per_1000_context", 1e6 * point.seconds_per_token}});
  }
  const BlockCosts& blocks = calibration.blocks;
  print_json({{"key", key.key},
              {"points", points},
              {"attention_ms", 1e3 * blocks.attention},
              {"attention_ms_per_1000_context", 1e6 * seconds_per_token(calibration, n_layers)},
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
