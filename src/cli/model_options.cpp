#include "cli/model_options.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "api/checked_options.h"
#include "cli/output.h"
#include "core/error.h"
#include "model/placement.h"

namespace forerun {
namespace {

// A line on standard error, drawn over itself. Nothing where nobody watches: there a line
// would only stand among those that matter.
class ProgressLine {
 public:
  void show(std::string_view what, double share) {
    using namespace std::chrono_literals;
    if (what != what_) {
      what_ = what;
      start_ = std::chrono::steady_clock::now();
      shown_ = -1;
    }
    const int percent = static_cast<int>(share * 100.0);
    if (!is_terminal_ || percent == shown_ || std::chrono::steady_clock::now() - start_ < 1s) return;
    std::fprintf(stderr, "\r%s %3d %%%s", what_.c_str(), percent, share >= 1.0 ? "\r\033[K" : "");
    shown_ = percent;
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) != 0;
  std::string what_;
  std::chrono::steady_clock::time_point start_{};
  int shown_ = -1;
};

std::optional<int> parse_gpu_layers(const std::string& text) {
  if (text == "auto") return std::nullopt;
  int n = -1;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, n) != std::from_chars_result{end, std::errc()} || n < 0) {
    fail(ErrorCode::kInvalidArgument, "--gpu-layers takes auto or a number from 0, not '{}'", text);
  }
  return n;
}

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& options) {
  CLI::Option* named = command
                           .add_option("-m,--model", options.model,
                                       "Path of a GGUF file, or a name: smollm2, gemma3-270m, ...")
                           ->capture_default_str();
  add_hub_options(command, options.hub, named);
  command.add_option("--device", options.device.name, "Where to compute: auto, cpu, cuda, cuda:1")
      ->capture_default_str();
  command.add_option("-t,--threads", options.device.n_threads, "CPU threads (default: one per core)")
      ->check(CLI::Range(1, GGML_MAX_N_THREADS));
  command.add_flag("!--no-pin", options.device.pin_threads, "Let the system move threads between CPUs");
}

void add_context_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("-c,--ctx-size", options.n_context,
                  "Tokens the context holds (default: what the model was trained for, at most 8192)")
      ->check(CLI::Range(1, kMaxContext));
  command.add_option("--kv-type", options.kv_type, "Type of cached keys and values: f16, f32, q8_0")
      ->capture_default_str();
  command.add_flag(
      "--exact,!--no-exact", options.exact,
      "Exactly the text without speculation where kernels other than forerun's compute: default "
      "on GPUs, for one request at a time; through libllama nothing is drafted then");
}

void add_placement_options(CLI::App& command, PlacementOptions& options) {
  constexpr const char* kGroup = "Models that do not fit one device";
  command
      .add_option_function<std::string>(
          "--gpu-layers",
          [&options](const std::string& text) { options.n_gpu_layers = parse_gpu_layers(text); },
          "Layers on GPUs and RPC servers, the others on the CPU: a number, or as many as fit")
      ->default_str("auto")
      ->group(kGroup);
  command
      .add_option("--split", options.split,
                  "Shares of those layers, separated by commas: of each GPU, then of each RPC server "
                  "(default: by free memory)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kGroup);
  command.add_flag("--cpu-experts", options.cpu_experts, "Keep mixtures of experts with the CPU")
      ->group(kGroup);
  command
      .add_option("--rpc", options.rpc,
                  "llama.cpp's RPC servers that take layers, separated by commas: host:port. Nothing "
                  "protects what goes to them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kGroup);
}

EngineOptions engine_options(const ModelOptions& options, const SpeculationOptions& speculation) {
  check_placement(options.placement);  // before a model is fetched
  EngineOptions engine;
  engine.model = chosen_model(options.model, options.hub);
  engine.device = options.device.name;
  engine.n_threads = options.device.n_threads;
  engine.pin_threads = options.device.pin_threads;
  engine.n_context = options.n_context;
  engine.kv_type = options.kv_type;
  engine.exact = options.exact;
  engine.placement = options.placement;
  engine.speculation = speculation;
  engine.progress = [line = std::make_shared<ProgressLine>()](std::string_view what, double share) {
    line->show(what, share);
  };
  engine.warn = print_warning;
  return engine;
}

}  // namespace forerun
