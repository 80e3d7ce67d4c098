// forerun bench spec: drafting methods side by side.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/spec_bench.h"
#include "bench/spec_page.h"
#include "bench/spec_report.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/speculation_options.h"
#include "core/error.h"
#include "engine/model_names.h"
#include "gguf/gguf_file.h"
#include "text/vocabulary.h"

namespace forerun {
namespace {

struct SpecOptions {
  ModelOptions model;
  GenerationFlags generation;
  SpeculationFlags speculation;
  std::vector<std::string> methods{"none", "pld", "sssd", "auto"};
  std::string prompts;
  std::string json;
  std::string report;
  std::string live_folder;
  int limit = 0;
  int batch = 1;
};

void show_progress(const SpecProgress& progress) {
  const int left = static_cast<int>(progress.seconds_left);
  std::fprintf(stderr, "\r\033[K%d of %d prompts, %d:%02d left", progress.n_done, progress.n_all,
               left / 60, left % 60);
  if (progress.n_done == progress.n_all) std::fprintf(stderr, "\r\033[K");
}

void print_table(const SpecBenchResult& result) {
  std::printf("%-10s %8s %15s %8s %10s %8s %10s\n", "", "speedup", "95 %", "tok/step", "accepted",
              "tok/s", "identical");
  for (size_t m = 0; m < result.methods.size(); ++m) {
    const SpecSummary s = result.summary(m);
    std::printf("%-10s %8.2f   %5.2f to %5.2f %8.2f %8.0f %% %8.1f %6d/%d\n", result.methods[m].c_str(),
                s.speedup, s.speedup_interval.low, s.speedup_interval.high,
                s.speculation.tokens_per_step(), 100 * s.speculation.accept_rate(), s.tokens_per_second,
                s.n_identical, s.n_prompts);
  }
  if (result.categories().size() < 2) return;
  std::printf("\nspeedup by category\n%-18s", "");
  for (const std::string& method : result.methods) std::printf(" %10s", method.c_str());
  std::printf("\n");
  for (const std::string& category : result.categories()) {
    std::printf("%-18s", category.c_str());
    for (size_t m = 0; m < result.methods.size(); ++m) {
      std::printf(" %10.2f", result.summary(m, category).speedup);
    }
    std::printf("\n");
  }
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream.good()) fail(ErrorCode::kIo, "cannot write {}", path);
}

void bench_spec(const SpecOptions& options) {
  SpecBenchOptions bench;
  bench.engine = engine_options(options.model, options.speculation.options());
  bench.methods = options.methods;
  bench.prompts = limited(read_prompts(options.prompts), options.limit);
  const Vocabulary vocabulary =
      Vocabulary::load(GgufFile::open(resolve_model(options.model.model)).metadata());
  bench.generation = generation_options(options.generation, static_cast<int>(vocabulary.n_tokens()));
  bench.batch = options.batch;
  bench.live_folder = options.live_folder;
  const bool show = ::isatty(STDERR_FILENO) != 0;
  const SpecBenchResult result =
      run_spec_bench(bench, show ? show_progress : std::function<void(const SpecProgress&)>());
  const nlohmann::ordered_json json = spec_bench_json(bench, result);
  if (!options.json.empty())
    write_file(options.json,
               json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  if (!options.report.empty()) write_file(options.report, spec_page(json, result));
  print_table(result);
}

}  // namespace

void add_bench_spec_command(CLI::App& bench) {
  auto options = std::make_shared<SpecOptions>();
  options->generation.options.sampling.temperature = 0;
  options->generation.options.max_tokens = 128;
  options->generation.seed = 1;
  CLI::App* command = bench.add_subcommand(
      "spec", "Compare drafting methods: how much faster, and whether the text is the same");
  command
      ->add_option("--prompts", options->prompts,
                   "JSONL file: Spec-Bench's form (category, turns), prompt fields, GSM8K, MBPP")
      ->required();
  command->add_option("--methods", options->methods, "Methods, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--limit", options->limit, "Use so many prompts only, alike of every category");
  command->add_option("--batch", options->batch, "Prompts answered at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--live", options->live_folder,
                      "Give each method a live datastore of its own in this folder");
  command->add_option("--json", options->json, "Write all numbers to this file");
  command->add_option("--report", options->report, "Write a page with plots to this file (HTML)");
  add_model_options(*command, options->model);
  add_context_options(*command, options->model);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  command->callback([options] { bench_spec(*options); });
}

}  // namespace forerun
