// forerun bench: how fast this is, here.
#include "bench/engine/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "core/error.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  ModelOptions model;
  EngineBenchOptions engine;
  bool json = false;
  std::string child_engine;
};

ContenderOptions contender_options(const BenchOptions& options) {
  ContenderOptions contender;
  contender.model = resolve_model(chosen_model(options.model.model, options.model.hub));
  contender.device = options.model.device;
  contender.device.kv_type = kv_type_named(options.model.kv_type);
  if (options.model.n_context > 0) contender.n_context = options.model.n_context;
  return contender;
}

Json comparison_json(const Comparison& comparison, const char* unit) {
  return {{std::string("forerun_") + unit, comparison.forerun},
          {std::string("libllama_") + unit, comparison.libllama},
          {"ratio", comparison.ratio()}};
}

Json result_json(const EngineBenchResult& result, const std::string& model) {
  Json rows = Json::array();
  for (const RowsResult& row : result.rows) {
    Json entry{{"n", row.n}};
    entry.update(comparison_json(row.ms, "ms"));
    rows.push_back(std::move(entry));
  }
  Json object{{"model", model}, {"device", result.device}};
  if (!result.kernels.empty()) object["kernels"] = result.kernels;
  object["threads"] = result.n_threads;
  object["decode"] = comparison_json(result.decode_ms, "ms");
  object["prefill"] = comparison_json(result.prefill_ms, "ms");
  if (result.start_ms) object["load"] = comparison_json(*result.start_ms, "ms");
  if (result.peak_bytes) object["memory"] = comparison_json(*result.peak_bytes, "bytes");
  object["rows"] = rows;
  return object;
}

void print_table(const EngineBenchResult& result, const BenchOptions& options) {
  const auto row = [](const std::string& name, const Comparison& c, double scale) {
    std::printf("%-28s %12.3f %12.3f %8.2f\n", name.c_str(), c.forerun * scale, c.libllama * scale,
                c.ratio());
  };
  const std::string kernels = result.kernels.empty() ? "" : " (" + result.kernels + ")";
  std::printf("%s on %s%s, %d threads\n\n", options.model.name().c_str(), result.device.c_str(),
              kernels.c_str(), result.n_threads);
  std::printf("%-28s %12s %12s %8s\n", "", "forerun", "libllama", "ratio");
  row("decode, ms per token", result.decode_ms, 1);
  row(fmt::format("prompt of {}, ms", options.engine.prompt), result.prefill_ms, 1);
  if (result.start_ms) row("load to first token, ms", *result.start_ms, 1);
  if (result.peak_bytes) row("peak memory, MB", *result.peak_bytes, 1e-6);
  for (const RowsResult& rows : result.rows) row(fmt::format("pass over {}, ms", rows.n), rows.ms, 1);
  std::printf(
      "\nMedians of interleaved runs, %d tokens of context; a ratio above 1: forerun is better.\n",
      options.engine.context);
}

void bench_engine(BenchOptions options) {
  options.engine.contender = contender_options(options);
  const int needed =
      std::max(options.engine.prompt, options.engine.context + options.engine.decode + 32);
  options.engine.contender.n_context = std::max(options.engine.contender.n_context, needed);
  const bool show = !options.json && ::isatty(STDERR_FILENO) != 0;
  const auto result = run_engine_bench(options.engine, [show](const std::string& what) {
    if (show) std::fprintf(stderr, "\r\033[Kmeasuring: %s", what.c_str());
  });
  if (show) std::fprintf(stderr, "\r\033[K");
  if (options.json) {
    print_json(result_json(result, options.model.name()));
  } else {
    print_table(result, options);
  }
}

void bench_start(const BenchOptions& options) {
  const StartCost cost = measure_start(options.child_engine, contender_options(options));
  print_json({{"first_token_ms", cost.first_token_ms}, {"peak_bytes", cost.peak_bytes}});
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* bench = app.add_subcommand("bench", "Measure how fast this is here");
  bench->require_subcommand(1);

  CLI::App* engine = bench->add_subcommand(
      "engine", "Compare with libllama: decoding, prompts, small batches, loading");
  add_model_options(*engine, options->model);
  add_context_options(*engine, options->model);
  engine->add_option("--context", options->engine.context, "Tokens before what is timed")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  engine->add_option("--prompt", options->engine.prompt, "Length of the prompt that is read")
      ->check(CLI::Range(1, kMaxReadTokens))
      ->capture_default_str();
  engine->add_option("--rounds", options->engine.rounds, "Rounds, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  engine
      ->add_option("--starts", options->engine.starts,
                   "Child processes to measure loading with (0: leave it out)")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  engine->add_flag("--json", options->json, "Print one JSON object");
  engine->callback([options] { bench_engine(*options); });

  add_bench_retrieval_command(*bench);
  add_bench_serve_command(*bench);
  add_bench_spec_command(*bench);

  // Run by `bench engine` in processes of their own.
  CLI::App* start = bench->add_subcommand("start", "")->group("");
  add_model_options(*start, options->model);
  add_context_options(*start, options->model);
  start->add_option("--engine", options->child_engine)
      ->required()
      ->check(CLI::IsMember({"forerun", "libllama"}));
  start->callback([options] { bench_start(*options); });
}

}  // namespace forerun
