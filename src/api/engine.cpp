#include <forerun/benchmark.h>
#include <forerun/engine.h>

#include "api/checked_options.h"
#include "api/draft_models.h"
#include "api/speculator.h"
#include "core/error.h"
#include "cost/known_costs.h"
#include "engine/discard_guard.h"
#include "engine/loaded_model.h"
#include "engine/model_names.h"
#include "engine/stepper.h"
#include "model/executor.h"

namespace forerun {
namespace {

constexpr int kDefaultContextLimit = 8192;
constexpr int64_t kMaxCells = 1 << 30;  // of all contexts together, those of drafts beside them
// Rows of a GPU's small passes when text is to be exact. More would take longer drafts; but passes
// without any are filled up too, and there are many of these.
constexpr int kExactRows = 4;

void check(bool condition, const char* what) {
  if (!condition) fail(ErrorCode::kInvalidArgument, "{}", what);
}

DeviceOptions device_of(const EngineOptions& options) {
  return {.name = options.device, .n_threads = options.n_threads, .pin_threads = options.pin_threads};
}

LoadedModel load(const EngineOptions& options) {
  check_options(options);
  std::function<void(double)> progress;
  if (options.progress) progress = [&](double share) { options.progress("loading", share); };
  return load_model(resolve_model(options.model), device_of(options), progress);
}

int context_of(const EngineOptions& options, const ModelConfig& config) {
  const int n =
      options.n_context > 0 ? options.n_context : std::min(config.n_ctx_train, kDefaultContextLimit);
  check(int64_t{n} * options.n_parallel <= kMaxCells,
        "so many contexts of that size are too large: choose a smaller context (-c) or fewer requests");
  return n;
}

int min_rows_of(const EngineOptions& options, const Device& device) {
  if (!options.exact || device.is_host()) return 1;
  check(options.n_parallel == 1, "exact text on a GPU is for one request at a time");
  return kExactRows;
}

// Warnings come at any time, from any thread: there is nobody to hand an exception to.
Speculator::Warn never_throwing(Speculator::Warn warn) {
  if (!warn) return warn;
  return [warn = std::move(warn)](std::string_view message) {
    try {
      warn(message);
    } catch (...) {
    }
  };
}

}  // namespace

class Engine::Impl {
 public:
  explicit Impl(const EngineOptions& options)
      : loaded(load(options)),
        n_context(context_of(options, loaded.model->config())),
        executor(loaded.model, {.kv = {.n_cells = n_context * options.n_parallel,
                                       .type = kv_type_named(options.kv_type)},
                                .min_rows = min_rows_of(options, loaded.model->device())}),
        costs(known_costs(executor)),
        progress(options.progress),
        warn(never_throwing(options.warn)),
        draft_models({.target = loaded,
                      .device = device_of(options),
                      .kv_type = kv_type_named(options.kv_type),
                      .n_slots = options.n_parallel,
                      .n_context = n_context,
                      .progress = options.progress,
                      .warn = warn}),
        stepper(executor, loaded.vocabulary, {.n_slots = options.n_parallel, .n_context = n_context},
                &costs) {
    add_speculation(options.speculation);
  }
  ~Impl() { keep_costs(executor, costs); }

  SpeculationId add_speculation(const SpeculationOptions& options) {
    const Speculator::Resources resources{
        .vocabulary = loaded.vocabulary,
        .executor = executor,
        .costs = costs,
        .warn = warn,
        .draft_model = [this](const DraftModelChoice& choice) { return draft_models.load(choice); }};
    speculators.push_back(std::make_unique<Speculator>(options, resources));
    return SpeculationId{static_cast<int32_t>(speculators.size() - 1)};
  }

  Speculator& speculator(SpeculationId id) {
    const auto index = static_cast<size_t>(to_int(id));
    check(index < speculators.size(), "there is no such way to speculate");
    return *speculators[index];
  }

  LoadedModel loaded;
  int n_context;
  Executor executor;
  PassCosts costs;
  std::function<void(std::string_view, double)> progress;
  Speculator::Warn warn;
  DraftModels draft_models;
  std::vector<std::unique_ptr<Speculator>> speculators;
  Stepper stepper;  // its requests use all of these
};

Engine::Engine(const EngineOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

int Engine::n_vocab() const {
  return impl_->loaded.model->config().n_vocab;
}

int Engine::n_context() const {
  return impl_->n_context;
}

int Engine::n_context_trained() const {
  return impl_->loaded.model->config().n_ctx_train;
}

Engine::Hardware Engine::hardware() const {
  const Device& device = impl_->loaded.model->device();
  return {.device = device.info().name,
          .description = device.info().description,
          .kernels = device.kernels() != nullptr ? device.kernels()->name : "",
          .n_threads = device.n_threads()};
}

bool Engine::has_chat_template() const {
  return impl_->loaded.chat_template.has_value();
}

std::vector<TokenId> Engine::tokenize(std::string_view text, bool parse_special) const {
  return impl_->loaded.vocabulary.tokenize(text, {.parse_special = parse_special});
}

std::vector<TokenId> Engine::chat_prompt(const std::vector<ChatMessage>& messages) const {
  if (!has_chat_template()) {
    fail(ErrorCode::kUnsupported, "this model has no chat template; give it a text to continue");
  }
  return impl_->loaded.vocabulary.tokenize_rendered(
      impl_->loaded.chat_template->render(messages, /*add_generation_prompt=*/true));
}

std::string Engine::piece(TokenId token) const {
  return impl_->loaded.vocabulary.piece(token, ControlTokens::kRendered);
}

Generation Engine::generate(Request request) {
  // Text means that the prompt is read, and comes after the last that is said of it.
  auto reading = std::make_shared<bool>(impl_->progress != nullptr);
  const auto show = [this, reading](double share) {
    if (!*reading) return;
    impl_->progress("reading the prompt", share);
    *reading = share < 1.0;
  };
  if (*reading && request.on_text) {
    request.on_text = [tell = std::move(request.on_text), show](std::string_view text) {
      show(1.0);
      tell(text);
    };
  }
  const RequestId id = submit(std::move(request));
  const DiscardGuard guard(impl_->stepper, id);
  for (;;) {
    if (auto generation = take(id)) {
      show(1.0);
      return std::move(*generation);
    }
    step();
    show(impl_->stepper.share_read(id));
  }
}

RequestId Engine::submit(Request request) {
  Speculator& speculator = impl_->speculator(request.speculation);
  const bool tells_answer = request.benchmark != nullptr && request.benchmark->known_answer;
  if (speculator.needs_answers() && !tells_answer) fail_without_answer();
  return impl_->stepper.submit(std::move(request), speculator.speculation());
}

SpeculationId Engine::add_speculation(const SpeculationOptions& options) {
  return impl_->add_speculation(options);
}

void Engine::cancel(RequestId request) {
  impl_->stepper.cancel(request);
}

bool Engine::step() {
  return impl_->stepper.step();
}

int Engine::n_reading() const {
  return impl_->stepper.n_reading();
}

std::optional<Generation> Engine::take(RequestId request) {
  auto result = impl_->stepper.take(request);
  if (!result) return std::nullopt;
  if (auto* error = std::get_if<std::exception_ptr>(&*result)) std::rethrow_exception(*error);
  return std::get<Generation>(std::move(*result));
}

const SpeculationStatistics& Engine::statistics() const {
  return impl_->stepper.statistics();
}

void Engine::save_context(const std::filesystem::path& path) const {
  impl_->stepper.slots().save(path);
}

void Engine::restore_context(const std::filesystem::path& path) {
  impl_->stepper.slots().restore(path);
}

void Engine::forget_contexts() {
  impl_->stepper.slots().clear();
}

}  // namespace forerun
