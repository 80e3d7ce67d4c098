// forerun bench spec: drafting methods side by side.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/checked_options.h"
#include "bench/page/page.h"
#include "bench/quoted_text.h"
#include "bench/spec/bench.h"
#include "bench/spec/report.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/speculation_options.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

struct SpecOptions {
  ModelOptions model;
  GenerationFlags generation;
  SpeculationFlags speculation;
  std::vector<std::string> methods{"none", "pld", "sssd", "auto"};
  LlamaServerChoice llama_server;
  std::string prompts;
  std::string json;
  std::string report;
  std::string live_folder;
  int limit = 0;
  std::optional<double> mix;
  int batch = 1;
  bool steps = false;
};

void show_progress(const SpecProgress& progress) {
  const int left = static_cast<int>(progress.seconds_left);
  std::fprintf(stderr, "\r\033[K%d of %d prompts, %d:%02d left", progress.n_done, progress.n_all,
               left / 60, left % 60);
  if (progress.n_done == progress.n_all) std::fprintf(stderr, "\r\033[K");
}

// Accepted of tested, which llama-server does not count.
std::string accepted_words(const SpecSummary& summary) {
  if (summary.drafts.n_tested == 0) return "-";
  return fmt::format("{:.0f} %", 100 * summary.speculation.accept_rate());
}

void print_methods(const SpecBenchResult& result, size_t width) {
  fmt::print("{:<{}} {:>8} {:>15} {:>8} {:>10} {:>8} {:>10}\n", "", width, "speedup", "95 %", "tok/step",
             "accepted", "tok/s", "identical");
  for (size_t m = 0; m < result.methods.size(); ++m) {
    const SpecSummary s = result.summary(m);
    fmt::print("{:<{}} {:>8.2f}   {:>5.2f} to {:>5.2f} {:>8.2f} {:>10} {:>8.1f} {:>6}/{}\n",
               result.methods[m], width, s.speedup, s.speedup_interval.low, s.speedup_interval.high,
               s.speculation.tokens_per_step(), accepted_words(s), s.tokens_per_second, s.n_identical,
               s.n_prompts);
  }
  if (const std::string words = peer_words(result); !words.empty()) {
    fmt::print(
        "\nspeedup: over none, forerun's plain decoding; identical: the tokens of none, for llama: "
        "modes "
        "those of llama:plain\n{}\n",
        words);
  }
}

// What is known of texts that are not plain decoding's.
void print_differences(const SpecBenchResult& result) {
  for (size_t m = 1; m < result.n_own(); ++m) {
    int n = 0;
    std::optional<double> widest;
    for (const TextDifference& difference : result.differences) {
      if (difference.method != m) continue;
      ++n;
      if (difference.margin) widest = std::max(widest.value_or(0), *difference.margin);
    }
    if (!widest) continue;
    fmt::print(
        "{}: where {} texts part, plain decoding's token led by at most {:.3f} in log-probability\n",
        result.methods[m], n, *widest);
  }
}

void print_categories(const SpecBenchResult& result, size_t name_width) {
  const std::vector<std::string> categories = result.categories();
  if (categories.size() < 2) return;
  const auto width_of = [](const std::string& category) { return std::max<size_t>(8, category.size()); };
  fmt::print("\n{:<{}}", "speedup", name_width);
  for (const std::string& category : categories) fmt::print(" {:>{}}", category, width_of(category));
  for (size_t m = 0; m < result.methods.size(); ++m) {
    fmt::print("\n{:<{}}", result.methods[m], name_width);
    for (const std::string& category : categories) {
      fmt::print(" {:>{}.2f}", result.summary(m, category).speedup, width_of(category));
    }
  }
  fmt::print("\n");
}

void bench_spec(const SpecOptions& options) {
  if (!options.json.empty()) check_output(options.json, {options.prompts});
  if (!options.report.empty()) check_output(options.report, {options.prompts});
  if (!options.json.empty() && options.json == options.report) {
    fail(ErrorCode::kInvalidArgument, "--json and --report name the same file");
  }
  SpecBenchOptions bench;
  bench.generation = generation_options(options.generation);
  bench.engine = engine_options(options.model, options.speculation.options());
  for (const std::string& list : options.methods) {
    for (std::string& method : split_quoted(list, ',')) bench.methods.push_back(std::move(method));
  }
  bench.llama_server = options.llama_server;
  const PromptFile file = read_prompts(options.prompts);
  bench.prompts = limited(file.prompts, options.limit);
  bench.prompt_origin = {
      .path = options.prompts, .hash = file.hash, .limit = options.limit, .mix = options.mix};
  if (options.mix) {
    const uint64_t seed = bench.generation.sampling.seed.value_or(0);
    bench.prompts = mixed_stream(bench.prompts, *options.mix, seed);
  }
  bench.batch = options.batch;
  bench.live_folder = options.live_folder;
  bench.reports_steps = options.steps;
  const bool show = ::isatty(STDERR_FILENO) != 0;
  const InterruptGuard guard;
  const SpecBenchResult result = run_spec_bench(bench, [&](const SpecProgress& progress) {
    check_interrupt();
    if (show) show_progress(progress);
  });
  size_t name_width = 10;
  for (const std::string& method : result.methods) name_width = std::max(name_width, method.size());
  print_methods(result, name_width);
  print_differences(result);
  print_categories(result, name_width);
  const nlohmann::ordered_json json = spec_bench_json(bench, result);
  if (!options.json.empty()) {
    replace_file(options.json,
                 json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  if (!options.report.empty()) replace_file(options.report, spec_page(json, result));
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
  command
      ->add_option("--methods", options->methods,
                   "Methods, separated by commas; options of one: swift:search=published:share=1. A "
                   "value with commas or colons stands in \"quotes\"")
      ->capture_default_str();
  command->add_option("--llama-server", options->llama_server.program,
                      "Compare with this llama-server too: its path, or a name in PATH");
  command
      ->add_option("--llama-modes", options->llama_server.modes,
                   "Its modes, separated by commas (default: plain and all that begin with ngram-)")
      ->delimiter(',')
      ->needs("--llama-server");
  command
      ->add_option("--llama-wait", options->llama_server.wait_s,
                   "Seconds that each of them may take to load")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str()
      ->needs("--llama-server");
  command->add_option("--limit", options->limit, "Use so many prompts only, alike of every category");
  command
      ->add_option("--mix", options->mix,
                   "Order prompts as a stream that leaves its category with this chance (--seed)")
      ->check(number_range(0.0, 1.0));
  command
      ->add_option("--batch", options->batch,
                   "Prompts answered at once; where one ends, the next begins")
      ->check(CLI::Range(1, kMaxParallel))
      ->capture_default_str();
  command->add_option("--live", options->live_folder,
                      "Give each method a live datastore of its own in this folder");
  command->add_option("--json", options->json, "Write all numbers to this file");
  command->add_flag("--steps", options->steps, "In that file, how far each step of every answer drafted")
      ->needs("--json");
  command->add_option("--report", options->report, "Write a page with plots to this file (HTML)");
  add_model_options(*command, options->model);
  add_context_options(*command, options->model);
  add_placement_options(*command, options->model.placement);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  command->callback([options] { bench_spec(*options); });
}

}  // namespace forerun
