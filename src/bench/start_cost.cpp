#include "bench/start_cost.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/stopwatch.h"

extern char** environ;

namespace forerun {
namespace {

constexpr int kPromptTokens = 16;

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

// Runs this program with other arguments and returns what it prints. If it fails, what
// it says becomes our Error.
std::string output_of(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail(ErrorCode::kIo, "cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; failed == 0 && (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  if (failed == 0) ::waitpid(child, &status, 0);
  if (failed != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string_view prefix = "forerun: ";
    if (output.starts_with(prefix)) output.erase(0, prefix.size());
    fail(ErrorCode::kUnsupported, "measuring how long loading takes failed: {}", output);
  }
  return output;
}

}  // namespace

StartCost measure_start(const std::string& engine, const ContenderOptions& options) {
  const Stopwatch watch;
  std::optional<LoadedModel> loaded;
  std::shared_ptr<Device> device;
  std::unique_ptr<Contender> contender;
  if (engine == "forerun") {
    loaded = load_model(options.model, options.device);
    contender = make_forerun_contender(loaded->model, options);
  } else {
    device = Device::open(options.device);
    contender = make_libllama_contender(options, *device);
  }
  contender->read(kPromptTokens);
  return {.first_token_ms = watch.ms(), .peak_bytes = peak_bytes()};
}

StartCost measure_start_in_child(const std::string& engine, const ContenderOptions& options) {
  std::vector<std::string> arguments{"/proc/self/exe",
                                     "bench",
                                     "start",
                                     "--engine",
                                     engine,
                                     "-m",
                                     std::filesystem::absolute(options.model).string(),
                                     "--device",
                                     options.device.name,
                                     "-c",
                                     std::to_string(options.n_context),
                                     "--kv-type",
                                     std::string(to_string(options.kv_type))};
  if (options.device.n_threads > 0) {
    arguments.insert(arguments.end(), {"-t", std::to_string(options.device.n_threads)});
  }
  if (!options.device.pin_threads) arguments.emplace_back("--no-pin");
  const auto result = nlohmann::json::parse(output_of(std::move(arguments)));
  return {.first_token_ms = result.at("first_token_ms"), .peak_bytes = result.at("peak_bytes")};
}

}  // namespace forerun
