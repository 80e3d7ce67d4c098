// forerun bench retrieval: how fast datastores are built and searched.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/retrieval_bench.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  RetrievalBenchOptions bench;
  std::string folder;
  bool json = false;
};

Json percentiles_json(const Percentiles& percentiles) {
  return {{"median", percentiles.median}, {"p99", percentiles.p99}};
}

void bench_retrieval(Options& options) {
  options.bench.folder = options.folder;
  if (options.folder.empty()) {
    options.bench.folder =
        std::filesystem::temp_directory_path() / fmt::format("forerun-bench-{}", ::getpid());
  }
  const bool show = !options.json && ::isatty(STDERR_FILENO) != 0;
  const RetrievalBenchResult result = run_retrieval_bench(options.bench, [show](std::string_view what) {
    if (show) fmt::print(stderr, "\r\033[K{}", what);
  });
  if (show) fmt::print(stderr, "\r\033[K");
  if (options.json) {
    print_json({{"tokens", options.bench.n_tokens},
                {"segments", options.bench.n_segments},
                {"threads", options.bench.n_threads},
                {"build_tokens_per_second", result.tokens_per_second},
                {"bytes_per_token", result.bytes_per_token},
                {"peak_bytes_per_token", result.peak_bytes_per_token},
                {"search_us", percentiles_json(result.search_us)},
                {"step_us", percentiles_json(result.step_us)},
                {"folding_step_us", percentiles_json(result.folding_step_us)},
                {"folded_tokens", result.n_folded}});
    return;
  }
  fmt::print("{} tokens in {} segments, {} threads\n\n", options.bench.n_tokens,
             options.bench.n_segments, options.bench.n_threads);
  fmt::print("building            {:.2f} million tokens/s, at most {:.1f} bytes of memory per token\n",
             1e-6 * result.tokens_per_second, result.peak_bytes_per_token);
  fmt::print("on disk             {:.2f} bytes per token\n", result.bytes_per_token);
  const auto row = [](const char* name, const Percentiles& p) {
    fmt::print("{:<19} median {:.1f} us, 99 % below {:.1f} us\n", name, p.median, p.p99);
  };
  row("a search", result.search_us);
  row("a step", result.step_us);
  row("while text is folded", result.folding_step_us);
  fmt::print("                    ({} tokens were folded)\n", result.n_folded);
}

}  // namespace

void add_bench_retrieval_command(CLI::App& bench) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      bench.add_subcommand("retrieval", "Measure datastores: building, searching, adding meanwhile");
  command->add_option("--tokens", options->bench.n_tokens, "Tokens of the store")
      ->check(CLI::Range(int64_t{100'000}, int64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--segments", options->bench.n_segments, "Segments it has")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--queries", options->bench.n_queries, "Searches that are timed")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--steps", options->bench.n_steps, "Steps that are timed while text is added")
      ->check(CLI::Range(100, 10'000'000))
      ->capture_default_str();
  command
      ->add_option("-t,--threads", options->bench.n_threads, "Threads that build, and compute meanwhile")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  command->add_option("--folder", options->folder,
                      "Where to make the store, which is removed again (default: a temporary one)");
  command->add_flag("--json", options->json, "Print all numbers as JSON");
  command->callback([options] { bench_retrieval(*options); });
}

}  // namespace forerun
