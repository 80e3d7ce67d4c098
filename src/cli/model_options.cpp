#include "cli/model_options.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/error.h"

namespace forerun {
namespace {

constexpr int kDefaultContextLimit = 8192;
constexpr int kMaxContext = 1 << 24;

// A line on standard error, drawn over itself on a terminal.
class ProgressLine {
 public:
  void operator()(double share) {
    using namespace std::chrono_literals;
    if (std::chrono::steady_clock::now() - start_ < 1s) return;
    const int percent = static_cast<int>(share * 100.0);
    if (percent == shown_) return;
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    if (terminal) {
      std::fprintf(stderr, "\rloading %3d %%%s", percent, share >= 1.0 ? "\r\033[K" : "");
    } else if (shown_ < 0 || share >= 1.0) {
      std::fprintf(stderr, "loading %d %%\n", percent);
    }
    shown_ = percent;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int shown_ = -1;
};

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("-m,--model", options.model,
                  "Path of a GGUF file, or a name: smollm2, gemma3-270m, ...")
      ->capture_default_str();
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
}

int default_context(const ModelConfig& config) {
  return std::min(config.n_ctx_train, kDefaultContextLimit);
}

LoadedModel load(const ModelOptions& options) {
  return load_model(resolve_model(options.model), options.device,
                    [line = std::make_shared<ProgressLine>()](double share) { (*line)(share); });
}

KvType kv_type(const ModelOptions& options) {
  const auto type = parse_kv_type(options.kv_type);
  if (type) return *type;
  fail(ErrorCode::kInvalidArgument, "--kv-type must be f16, f32 or q8_0, not '{}'", options.kv_type);
}

ExecutorOptions executor_options(const ModelOptions& options, const ModelConfig& config) {
  return {.kv = {.n_cells = options.n_context > 0 ? options.n_context : default_context(config),
                 .type = kv_type(options)}};
}

}  // namespace forerun
