// forerun bench serve: servers under load, with clients of their own.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/serve/bench.h"
#include "cli/commands.h"
#include "cli/hub_model.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "core/error.h"
#include "engine/model_names.h"
#include "prompts/prompts.h"

namespace forerun {
namespace {

struct ServeBenchFlags {
  std::string model{kDefaultModel};
  HubChoice hub;
  std::string prompts;
  int limit = 0;
  int n_threads = 0;
  int n_tokens = 64;
  int n_context = 2048;
  int n_prefix = 0;
  double temperature = 0;
  std::vector<std::string> methods{"none", "auto"};
  std::string llama_server;
  ServeBenchOptions bench;
  bool json = false;
};

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

LlamaServerOptions server_of(const ServeBenchFlags& flags, int n_parallel) {
  LlamaServerOptions server;
  const auto add = [&](const char* flag, const auto& value) {
    server.arguments.emplace_back(flag);
    server.arguments.push_back(fmt::format("{}", value));
  };
  add("-m", resolve_model(chosen_model(flags.model, flags.hub)).string());
  add("--parallel", n_parallel);
  if (flags.n_threads > 0) add("-t", flags.n_threads);
  return server;
}

std::vector<ServeContender> contenders(const ServeBenchFlags& flags) {
  const auto& streams = flags.bench.streams;
  const int n_parallel = streams.empty() ? 64 : *std::max_element(streams.begin(), streams.end());
  std::vector<ServeContender> result;
  for (const std::string& method : flags.methods) {
    ServeContender contender{.name = method, .server = server_of(flags, n_parallel)};
    contender.server.program = own_program();
    contender.server.command = "serve";
    for (const std::string& more :
         {std::string("--spec"), method, std::string("-c"), std::to_string(flags.n_context)}) {
      contender.server.arguments.push_back(more);
    }
    result.push_back(std::move(contender));
  }
  if (!flags.llama_server.empty()) {
    ServeContender contender{.name = "llama-server", .server = server_of(flags, n_parallel)};
    contender.server.program = flags.llama_server;
    // Its context is shared out among the requests.
    contender.server.arguments.insert(
        contender.server.arguments.end(),
        {"-c", std::to_string(flags.n_context * n_parallel), "--no-webui"});
    result.push_back(std::move(contender));
  }
  return result;
}

// What users ask, behind the same instructions where those are wanted.
std::vector<std::string> bodies(const ServeBenchFlags& flags) {
  std::string prefix;
  for (int i = 0; i < flags.n_prefix; ++i)
    prefix += fmt::format("Rule {}: answer in good order. ", i + 1);
  std::vector<std::string> result;
  for (const BenchPrompt& prompt : limited(read_prompts(flags.prompts).prompts, flags.limit)) {
    nlohmann::json messages = nlohmann::json::array();
    if (!prefix.empty()) messages.push_back({{"role", "system"}, {"content", prefix}});
    messages.push_back({{"role", "user"}, {"content", prompt.turns.front()}});
    const nlohmann::json body = {{"messages", messages},
                                 {"max_tokens", flags.n_tokens},
                                 {"temperature", flags.temperature},
                                 {"seed", 1},
                                 {"stream", true},
                                 {"stream_options", {{"include_usage", true}}}};
    result.push_back(body.dump());
  }
  if (result.empty()) fail(ErrorCode::kInvalidArgument, "{} has no prompt", flags.prompts);
  return result;
}

void print_rows(const std::vector<ServeBenchRow>& rows) {
  fmt::print("{:>7}  {:<14} {:>8} {:>6}   {:>10} {:>10}   {:>10} {:>10}\n", "streams", "server", "tok/s",
             "ratio", "first p50", "p99", "gap p50", "p99");
  for (const ServeBenchRow& row : rows) {
    fmt::print(
        "{:>7}  {:<14} {:>8.1f} {:>6.2f}   {:>7.0f} ms {:>7.0f} ms   {:>7.1f} ms {:>7.1f} ms{}{}\n",
        row.n_streams, row.name, row.tokens_per_second, row.ratio, 1e3 * row.first_p50,
        1e3 * row.first_p99, 1e3 * row.gap_p50, 1e3 * row.gap_p99,
        row.n_failed > 0 ? fmt::format("  {} failed", row.n_failed) : "",
        row.n_other_texts > 0 ? fmt::format("  {} other texts", row.n_other_texts) : "");
  }
}

void run_bench(ServeBenchFlags flags) {
  flags.bench.contenders = contenders(flags);
  flags.bench.bodies = bodies(flags);
  if (::isatty(STDERR_FILENO) != 0) {
    flags.bench.progress = [](int n_done, int n_all) {
      fmt::print(stderr, "\r\033[K{} of {} loads{}", n_done, n_all, n_done == n_all ? "\r\033[K" : "");
    };
  }
  const std::vector<ServeBenchRow> rows = bench_serve(flags.bench);
  if (flags.json) {
    print_json(serve_bench_json(rows));
  } else {
    print_rows(rows);
  }
}

}  // namespace

void add_bench_serve_command(CLI::App& bench) {
  auto flags = std::make_shared<ServeBenchFlags>();
  CLI::App* command =
      bench.add_subcommand("serve", "Servers under load: tokens per second, and how long clients wait");
  CLI::Option* named = command->add_option("-m,--model", flags->model, "Path of a GGUF file, or a name");
  add_hub_options(*command, flags->hub, named->capture_default_str());
  command->add_option("--prompts", flags->prompts, "JSONL file of prompts")->required();
  command->add_option("--limit", flags->limit, "Prompts at most, alike of every category")
      ->check(CLI::Range(1, 1000000));
  command->add_option("-t,--threads", flags->n_threads, "CPU threads (default: one per core)")
      ->check(CLI::Range(1, 512));
  command->add_option("-n,--max-tokens", flags->n_tokens, "Tokens of an answer at most")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("-c,--ctx-size", flags->n_context, "Context of each request")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  command->add_option("--temp", flags->temperature, "Temperature")
      ->check(number_range(0.0, 10.0))
      ->capture_default_str();
  command
      ->add_option("--shared-prefix", flags->n_prefix,
                   "Sentences of instructions that all prompts begin with")
      ->check(CLI::Range(0, 10000));
  command
      ->add_option("--methods", flags->methods,
                   "Ways to draft, the first being what the others are compared with")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--llama-server", flags->llama_server,
                      "llama.cpp's server, to be compared with too");
  command
      ->add_option("--streams", flags->bench.streams,
                   "Clients at once, each asking one request after the other")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  command
      ->add_option("--rate", flags->bench.rate,
                   "Instead, requests a second, whether earlier ones are answered or not")
      ->check(number_range(0.0, 1e6));
  command->add_option("--requests", flags->bench.n_requests, "Requests of each client in a round")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option("--rounds", flags->bench.n_rounds,
                   "Rounds, in each of which every server has its turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print JSON instead of a table");
  command->callback([flags] { run_bench(*flags); });
}

}  // namespace forerun
