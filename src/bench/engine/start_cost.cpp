#include "bench/engine/start_cost.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/child_process.h"
#include "bench/peak_memory.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

constexpr int kPromptTokens = 16;

// Runs this program with other arguments and returns what it prints. If it fails, what
// it says becomes our Error.
std::string output_of(std::vector<std::string> arguments) {
  ChildProcess process(std::move(arguments));
  const bool ended_well = process.wait();
  std::string output = process.output();
  if (ended_well) return output;
  const std::string_view prefix = "forerun: ";
  if (output.starts_with(prefix)) output.erase(0, prefix.size());
  fail(ErrorCode::kUnsupported, "measuring how long loading takes failed: {}", output);
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
  return {.first_token_ms = watch.ms(), .peak_bytes = static_cast<double>(peak_bytes())};
}

StartCost measure_start_in_child(const std::string& engine, const ContenderOptions& options) {
  std::error_code error;
  const auto model = std::filesystem::absolute(options.model, error);
  if (error) fail(ErrorCode::kIo, "cannot tell which folder this is: {}", error.message());
  std::vector<std::string> arguments{"/proc/self/exe",
                                     "bench",
                                     "start",
                                     "--engine",
                                     engine,
                                     "-m",
                                     model.string(),
                                     "--device",
                                     options.device.name,
                                     "-c",
                                     std::to_string(options.n_context),
                                     "--kv-type",
                                     std::string(to_string(options.device.kv_type))};
  if (options.device.n_threads > 0) {
    arguments.insert(arguments.end(), {"-t", std::to_string(options.device.n_threads)});
  }
  if (!options.device.pin_threads) arguments.emplace_back("--no-pin");
  const auto result = nlohmann::json::parse(output_of(std::move(arguments)));
  return {.first_token_ms = result.at("first_token_ms"), .peak_bytes = result.at("peak_bytes")};
}

}  // namespace forerun
