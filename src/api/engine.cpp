#include <forerun/benchmark.h>
#include <forerun/engine.h>

#include <mutex>

#include "api/checked_options.h"
#include "api/draft_models.h"
#include "api/speculator.h"
#include "api/tokenizer_impl.h"
#include "core/error.h"
#include "cost/known_costs.h"
#include "draft/methods.h"
#include "engine/discard_guard.h"
#include "engine/loaded_model.h"
#include "engine/model_names.h"
#include "engine/stepper.h"
#include "model/executor.h"

namespace forerun {
namespace {

constexpr int64_t kMaxCells = 1 << 30;  // of all contexts together, those of drafts beside them
// Rows of a GPU's small passes when text is to be exact. More would take longer drafts; but passes
// without any are filled up too, and there are many of these.
constexpr int kExactRows = 4;

void check(bool condition, const char* what) {
  if (!condition) fail(ErrorCode::kInvalidArgument, "{}", what);
}

DeviceOptions device_of(const EngineOptions& options) {
  return {.name = options.device,
          .n_threads = options.n_threads,
          .pin_threads = options.pin_threads,
          .kv_type = kv_type_named(options.kv_type)};
}

LoadedModel load(const EngineOptions& options) {
  check_options(options);
  std::function<void(double)> progress;
  if (options.progress) progress = [&](double share) { options.progress("loading", share); };
  return load_model(resolve_model(options.model),
                    ModelLoadOptions{.device = device_of(options),
                                     .placement = options.placement,
                                     .needs = {.n_context = options.n_context,
                                               .n_parallel = options.n_parallel,
                                               .n_cells = options.n_cells,
                                               .max_rows = options.max_rows}},
                    progress);
}

int context_of(const EngineOptions& options, const ModelConfig& config) {
  const int n = options.n_context > 0 ? options.n_context : usual_context(config);
  check(int64_t{n} * options.n_parallel <= kMaxCells,
        "so many contexts of that size are too large: choose a smaller context (-c) or fewer requests");
  return n;
}

// Without a choice a context for each request, or as much as memory allows: requests get cells by need.
int default_cells(const EngineOptions& options, const Model& model, int n_context) {
  constexpr double kShare = 0.8;  // of what is free: drafters and passes need some, too
  const int n_all = n_context * options.n_parallel;
  const size_t of_cell = KvCache::cell_bytes(model.config(), kv_type_named(options.kv_type));
  if (of_cell == 0) return n_all;  // a model whose texts are states
  double n_fitting = n_all;
  const auto fit = [&](const Device& device, double share_of_layers) {
    const double n_bytes = static_cast<double>(of_cell) * share_of_layers;
    if (n_bytes > 0)
      n_fitting = std::min(n_fitting, kShare * static_cast<double>(device.n_free_bytes()) / n_bytes);
  };
  const int n_layers = model.config().n_layers;
  for (const ModelPart& part : model.parts()) {
    int n = 0;
    for (int layer = 0; layer < n_layers; ++layer) n += part.has_attention(layer) ? 1 : 0;
    fit(*part.device, static_cast<double>(n) / n_layers);
  }
  // Where libllama computes it, it was spread with room for all.
  if (!model.has_blocks() && !model.placement().is_spread()) fit(model.device(), 1);
  return n_fitting < n_all ? std::max(n_context, static_cast<int>(n_fitting)) : n_all;
}

int n_cells_of(const EngineOptions& options, const Model& model, int n_context) {
  if (options.n_cells == 0) return default_cells(options, model, n_context);
  check(options.n_cells >= n_context,
        "the cache must hold one context at least: choose a smaller context (-c)");
  return options.n_cells;
}

StepperOptions stepper_options(const EngineOptions& options, int n_context,
                               const Speculator::Warn& warn) {
  StepperOptions stepper{.n_slots = options.n_parallel, .n_context = n_context, .warn = warn};
  if (options.prompt_wait_ms > 0) stepper.prompt_seconds = options.prompt_wait_ms / 1e3;
  return stepper;
}

// As the file says; nullopt: nothing, or a way that only models have which rank texts.
std::optional<Pooling> pooling_of(const Model& model) {
  const auto key = model.config().architecture + ".pooling_type";
  switch (model.file().metadata().get_int(key).value_or(-1)) {
    case 0: return Pooling::kNone;
    case 1: return Pooling::kMean;
    case 2: return Pooling::kFirst;
    case 3: return Pooling::kLast;
    default: return std::nullopt;
  }
}

ModelFacts facts_of(const Model& model) {
  const GgufFile& file = model.file();
  const ModelConfig& config = model.config();
  int64_t n_parameters = 0;
  for (const GgufTensor& tensor : file.tensors()) n_parameters += tensor.n_elements();
  return {.path = file.path(),
          .name = config.name,
          .architecture = config.architecture,
          .fingerprint = model.fingerprint(),
          .n_parameters = n_parameters,
          .n_bytes = static_cast<int64_t>(file.n_bytes()),
          .n_embd = config.n_embd,
          .n_layers = config.n_layers,
          .n_vocab = config.n_vocab,
          .n_context_trained = config.n_ctx_train,
          .pooling = pooling_of(model)};
}

// Of the kernels that ggml has for GPUs, whose bits depend on the number of rows.
bool computes_on_ggmls(const Model& model) {
  return model.kernels_name().empty() && model.has_blocks();
}

// What is drafted may be verified so that the text is exact there, if nobody says whether it is to be.
bool suits_exact_text(const EngineOptions& options) {
  const SpeculationOptions& drafts = options.speculation;
  if (options.n_parallel > 1 || drafts.accept != "match") return false;
  return drafts.method == "none" || !find_method(drafts.method).needs_trees;
}

int min_rows_of(const EngineOptions& options, const Model& model) {
  if (!computes_on_ggmls(model) || !options.exact.value_or(suits_exact_text(options))) return 1;
  check(options.n_parallel == 1, "exact text on a GPU is for one request at a time");
  return kExactRows;
}

// What a user should know before the first answer; "": nothing.
std::string notice_of(const EngineOptions& options, const Model& model) {
  const Placement& placement = model.placement();
  std::string notice;
  if (placement.leaves_device) notice = "no layer goes to the GPU: the model is computed on the CPU";
  if (placement.is_spread()) notice = placement.where();
  if (placement.from_file) {
    notice += fmt::format(
        "{}the weights ({:.1f} GB) exceed the memory that is free: they are read from "
        "the file again and again, which takes long",
        notice.empty() ? "" : "; ", static_cast<double>(model.file().n_bytes()) / 1e9);
  }
  if (computes_on_ggmls(model) && min_rows_of(options, model) == 1) {
    notice += fmt::format(
        "{}ggml's kernels compute {} on the GPU: a draft{} may tip the balance between tokens that are "
        "equally likely",
        notice.empty() ? "" : "; ", model.parts().size() == 1 ? "the model" : "a part of the model",
        options.n_parallel > 1 ? ", or what others ask," : "");
  }
  if (model.has_blocks()) return notice;
  return fmt::format(
      "{}{}{}: drafts come from texts and draft models, no layers are left out, and a draft may tip the "
      "balance between tokens that are equally likely (--exact: no drafts)",
      notice, notice.empty() ? "" : "; ", model.why_libllama());
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
        facts(facts_of(*loaded.model)),
        tokenizer(std::make_shared<const Tokenizer::Impl>(
            Tokenizer::Impl{.vocabulary = loaded.vocabulary, .chat_template = loaded.chat_template})),
        executor(loaded.model, {.kv = {.n_cells = n_cells_of(options, *loaded.model, n_context),
                                       .type = kv_type_named(options.kv_type)},
                                .max_rows = options.max_rows,
                                .min_rows = min_rows_of(options, *loaded.model),
                                .is_exact = options.exact.value_or(false)}),
        costs(known_costs(executor)),
        progress(options.progress),
        warn(never_throwing(options.warn)),
        draft_models({.target = loaded,
                      .device = device_of(options),
                      .n_slots = options.n_parallel,
                      .n_context = n_context,
                      .progress = options.progress,
                      .warn = warn}),
        stepper(executor, loaded.vocabulary, stepper_options(options, n_context, warn), &costs) {
    add_speculation(options.speculation);
    if (const std::string notice = notice_of(options, *loaded.model); warn && !notice.empty())
      warn(notice);
  }
  ~Impl() { keep_costs(executor, costs); }

  SpeculationId add_speculation(const SpeculationOptions& options) {
    const Speculator::Resources resources{
        .vocabulary = loaded.vocabulary,
        .executor = executor,
        .costs = costs,
        .warn = warn,
        .draft_model = [this](const DraftModelChoice& choice) { return draft_models.load(choice); }};
    auto made = std::make_unique<Speculator>(options, resources);
    const std::scoped_lock lock(speculators_mutex);
    speculators.push_back(std::move(made));
    return SpeculationId{static_cast<int32_t>(speculators.size() - 1)};
  }

  Speculator& speculator(SpeculationId id) {
    const auto index = static_cast<size_t>(to_int(id));
    const std::scoped_lock lock(speculators_mutex);
    check(index < speculators.size(), "there is no such way to speculate");
    return *speculators[index];
  }

  LoadedModel loaded;
  int n_context;
  ModelFacts facts;
  Tokenizer tokenizer;
  Executor executor;
  PassCosts costs;
  std::function<void(std::string_view, double)> progress;
  Speculator::Warn warn;
  DraftModels draft_models;
  std::mutex speculators_mutex;  // requests come from any thread
  std::vector<std::unique_ptr<Speculator>> speculators;
  Stepper stepper;  // its requests use all of these
};

Engine::Engine(const EngineOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

const ModelFacts& Engine::model() const {
  return impl_->facts;
}

Tokenizer Engine::tokenizer() const {
  return impl_->tokenizer;
}

int Engine::n_context() const {
  return impl_->n_context;
}

Engine::Hardware Engine::hardware() const {
  const Device& device = impl_->loaded.model->device();
  return {.device = device.info().name,
          .description = device.info().description,
          .kernels = impl_->loaded.model->kernels_name(),
          .n_threads = device.n_threads(),
          .placement = impl_->loaded.model->placement().where()};
}

Generation Engine::generate(Request request) {
  // Text means that the prompt is read, and comes after the last that is said of it.
  auto reading = std::make_shared<bool>(impl_->progress != nullptr);
  const auto show = [this, reading](double share) {
    if (!*reading) return;
    impl_->progress("reading the prompt", share);
    *reading = share < 1.0;
  };
  if (*reading && request.on_chunk) {
    request.on_chunk = [tell = std::move(request.on_chunk), show](const Chunk& chunk) {
      show(1.0);
      tell(chunk);
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

StepResult Engine::step() {
  return impl_->stepper.step();
}

void Engine::wait(std::chrono::milliseconds most) {
  impl_->stepper.wait(most);
}

void Engine::wake() {
  impl_->stepper.wake();
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

EngineStatistics Engine::statistics() const {
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
