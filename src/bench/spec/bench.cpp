#include "bench/spec/bench.h"

#include <algorithm>
#include <memory>

#include "api/checked_options.h"
#include "bench/llama/method.h"
#include "bench/quoted_text.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "draft/methods.h"
#include "engine/model_names.h"
#include "engine/running_request.h"
#include "sampling/options.h"

namespace forerun {
namespace {

// Where several prompts are answered at once, a turn of a method has so many times as many: as on a
// server, the next begins where one ends. Alone the last ones of a batch would count for more than those
// before, and drafts, which end answers one by one, for less.
constexpr size_t kTurnBatches = 4;

// Among so many a token that rounding preferred is found.
constexpr int kNearestTokens = 32;

using Methods = std::vector<std::unique_ptr<SpecMethod>>;

// A prompt's conversation with one method.
struct Dialogue {
  const BenchPrompt* prompt;
  SpecRun* run;
  std::vector<ChatMessage> messages;
};

std::vector<TokenId> next_tokens(const Engine& engine, Dialogue& dialogue, size_t turn) {
  const std::string& text = dialogue.prompt->turns[turn];
  if (!engine.tokenizer().has_chat_template()) {
    std::string all;
    for (const ChatMessage& message : dialogue.messages) all += message.content + "\n\n";
    dialogue.messages.push_back({.role = "user", .content = text});
    return engine.tokenizer().tokenize(all + text);
  }
  dialogue.messages.push_back({.role = "user", .content = text});
  return engine.tokenizer().chat_prompt(dialogue.messages);
}

// The same, or an Error that says which prompt of the file is too long.
std::vector<TokenId> next_prompt(const Engine& engine, Dialogue& dialogue, size_t turn) {
  std::vector<TokenId> tokens = next_tokens(engine, dialogue, turn);
  try {
    check_prompt_fits(tokens.size(), engine.n_context(), engine.model().n_context_trained);
  } catch (const Error& error) {
    fail(error.code(), "{}{}: {}, or leave it out", dialogue.prompt->place,
         turn > 0 ? fmt::format(", turn {}", turn + 1) : "", error.what());
  }
  return tokens;
}

// Before anything is measured. What comes later depends on the answers.
void check_first_turns(const Engine& engine, const std::vector<BenchPrompt>& prompts) {
  for (const BenchPrompt& prompt : prompts) {
    Dialogue dialogue{.prompt = &prompt, .run = nullptr, .messages = {}};
    next_prompt(engine, dialogue, 0);
  }
}

// Answers the same turn of several dialogues at once.
void answer(const Engine& engine, SpecMethod& method, std::span<Dialogue> dialogues, size_t turn) {
  std::vector<Dialogue*> running;
  std::vector<std::vector<TokenId>> prompts;
  for (Dialogue& dialogue : dialogues) {
    if (turn >= dialogue.prompt->turns.size()) continue;
    prompts.push_back(next_prompt(engine, dialogue, turn));
    running.push_back(&dialogue);
  }
  if (running.empty()) return;
  const std::vector<SpecAnswer> answers = method.answer(prompts);
  for (size_t i = 0; i < running.size(); ++i) {
    running[i]->run->add(answers[i].run);
    running[i]->messages.push_back({.role = "assistant", .content = answers[i].text});
  }
}

// All turns of several dialogues.
void converse(const Engine& engine, SpecMethod& method, std::span<Dialogue> dialogues) {
  size_t n_turns = 0;
  for (const Dialogue& dialogue : dialogues) n_turns = std::max(n_turns, dialogue.prompt->turns.size());
  for (size_t turn = 0; turn < n_turns; ++turn) answer(engine, method, dialogues, turn);
}

// A method, perhaps with options of its own: "swift", "swift:search=published:lookahead=cost".
SpeculationOptions with_variant(SpeculationOptions options, const std::string& text) {
  const std::vector<std::string> parts = split_quoted(text, ':');
  options.method = parts.empty() ? "" : unquoted(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string part = unquoted(parts[i]);
    const size_t equals = part.find('=');
    if (equals == part.npos) {
      fail(ErrorCode::kInvalidArgument, "'{}' is no option of {}: give it as NAME=VALUE", part,
           options.method);
    }
    // What is not its own keeps its name: what methods have in common, or what `auto` drafts with.
    const std::string name = part.substr(0, equals);
    const std::string own = options.method + "-" + name;
    options.options[has_method_option(own) ? own : name] = part.substr(equals + 1);
  }
  return options;
}

// A method of ours, by the name it was given.
struct OwnMethod {
  std::string name;
  SpeculationOptions speculation;
  bool needs_answers;
};

// All of them, checked before anything is loaded.
std::vector<OwnMethod> own_methods(const SpecBenchOptions& options) {
  std::vector<std::string> names{"none"};
  for (const std::string& name : options.methods) {
    if (name == "none") continue;
    if (std::ranges::find(names, name) != names.end()) {
      fail(ErrorCode::kInvalidArgument, "the method {} is there twice", name);
    }
    names.push_back(name);
  }
  std::vector<OwnMethod> methods;
  for (const std::string& name : names) {
    SpeculationOptions speculation = with_variant(options.engine.speculation, name);
    if (!options.live_folder.empty()) speculation.live_datastore = options.live_folder / name;
    const bool needs_answers = parse_speculation(speculation).needs_answers;
    methods.push_back(
        {.name = name, .speculation = std::move(speculation), .needs_answers = needs_answers});
  }
  return methods;
}

// What each of them learns stays with it.
void add_own_methods(const SpecBenchOptions& options, const std::vector<OwnMethod>& own, Engine& engine,
                     Methods& methods) {
  for (const OwnMethod& method : own) {
    methods.push_back(
        make_forerun_method(engine, {.name = method.name,
                                     .speculation = engine.add_speculation(method.speculation),
                                     .generation = options.generation,
                                     .tells_answers = method.needs_answers}));
  }
}

void add_llama_methods(const SpecBenchOptions& options, const std::vector<std::string>& modes,
                       const Engine& engine, Methods& methods) {
  const Engine::Hardware hardware = engine.hardware();
  const LlamaMethodOptions llama{.program = options.llama_server.program,
                                 .model = resolve_model(options.engine.model).string(),
                                 .device = hardware.device,
                                 .n_threads = hardware.n_threads,
                                 .n_context = engine.n_context(),
                                 .n_parallel = options.batch,
                                 .kv_type = options.engine.kv_type,
                                 .wait_s = options.llama_server.wait_s,
                                 .generation = options.generation};
  for (const std::string& mode : modes) methods.push_back(make_llama_method(llama, mode));
}

void run_all(const SpecBenchOptions& options, const Engine& engine, const Methods& methods,
             const std::function<void(const SpecProgress&)>& progress, SpecBenchResult& result) {
  const size_t n_turn = static_cast<size_t>(options.batch) * (options.batch > 1 ? kTurnBatches : 1);
  const Stopwatch watch;
  for (size_t first = 0; first < options.prompts.size(); first += n_turn) {
    const size_t n = std::min(n_turn, options.prompts.size() - first);
    for (size_t m = 0; m < methods.size(); ++m) {
      // Each turn begins with another method, so that none is always first.
      const size_t method = (m + first / n_turn) % methods.size();
      std::vector<Dialogue> dialogues;
      for (size_t i = first; i < first + n; ++i) {
        dialogues.push_back(
            {.prompt = &options.prompts[i], .run = &result.runs[method][i], .messages = {}});
      }
      converse(engine, *methods[method], dialogues);
    }
    if (progress) {
      const double done = static_cast<double>(first + n);
      const double all = static_cast<double>(options.prompts.size());
      progress({.n_done = static_cast<int>(first + n),
                .n_all = static_cast<int>(options.prompts.size()),
                .seconds_left = watch.seconds() * (all - done) / done});
    }
  }
}

// How far apart the two tokens are at which a text parts from plain decoding's, which `plain`
// is once more, with log-probabilities.
std::optional<double> margin_at(const SpecRun& plain, const SpecRun& other, size_t token) {
  if (token >= plain.logprobs.size() || token >= other.tokens.size()) return std::nullopt;
  const TokenLogprobs& logprobs = plain.logprobs[token];
  for (const TokenLogprob& top : logprobs.top) {
    if (top.token == other.tokens[token]) return logprobs.chosen.logprob - top.logprob;
  }
  return std::nullopt;
}

void find_differences(const SpecBenchOptions& options, Engine& engine, SpecBenchResult& result) {
  GenerationOptions generation = options.generation;
  generation.sampling.n_logprobs = kNearestTokens;
  const bool is_greedy = generation.sampling.temperature <= 0;
  const auto plain = make_forerun_method(
      engine, {.name = "none", .speculation = SpeculationId{0}, .generation = generation});
  for (size_t i = 0; i < result.prompts.size(); ++i) {
    std::optional<SpecRun> again;
    for (size_t m = 1; m < result.n_own(); ++m) {
      if (result.is_identical(m, i)) continue;
      if (is_greedy && !again) {
        Dialogue dialogue{.prompt = &result.prompts[i], .run = &again.emplace(), .messages = {}};
        converse(engine, *plain, {&dialogue, 1});
      }
      const std::vector<TokenId>& expected = result.runs[0][i].tokens;
      const std::vector<TokenId>& found = result.runs[m][i].tokens;
      const auto parted = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
      const auto token = static_cast<size_t>(parted.first - expected.begin());
      const auto margin = again ? margin_at(*again, result.runs[m][i], token) : std::nullopt;
      result.differences.push_back({.method = m, .prompt = i, .token = token, .margin = margin});
    }
  }
}

// The answer of our last method that has the most tokens from drafts.
void choose_sample(const Engine& engine, SpecBenchResult& result) {
  const std::vector<SpecRun>& runs = result.runs[result.n_own() - 1];
  const auto n_drafted = [&](size_t i) {
    return std::count_if(runs[i].origins.begin(), runs[i].origins.end(),
                         [](const auto& origin) { return origin.has_value(); });
  };
  for (size_t i = 1; i < runs.size(); ++i) {
    if (n_drafted(i) > n_drafted(result.sample_prompt)) result.sample_prompt = i;
  }
  for (const TokenId token : runs[result.sample_prompt].tokens) {
    result.pieces.push_back(engine.tokenizer().piece(token));
  }
}

}  // namespace

SpecBenchResult run_spec_bench(const SpecBenchOptions& options,
                               const std::function<void(const SpecProgress&)>& progress) {
  SpecBenchResult result;
  const std::vector<OwnMethod> own = own_methods(options);
  std::vector<std::string> modes;
  if (const LlamaServerChoice& llama = options.llama_server; !llama.program.empty()) {
    modes = llama_modes(llama.program, llama.modes);  // before anything is loaded
    result.llama_version = llama_version(llama.program);
  }
  EngineOptions engine_options = options.engine;
  engine_options.n_parallel = options.batch;
  engine_options.speculation.method = "none";
  Engine engine(engine_options);
  validate(options.generation, engine.model().n_vocab);
  check_first_turns(engine, options.prompts);
  const Engine::Hardware hardware = engine.hardware();
  result.device = hardware.device;
  result.device_description = hardware.description;
  result.kernels = hardware.kernels;
  result.placement = hardware.placement;
  result.n_threads = hardware.n_threads;
  result.n_context = engine.n_context();

  Methods methods;
  add_own_methods(options, own, engine, methods);
  add_llama_methods(options, modes, engine, methods);
  for (const auto& method : methods) result.methods.push_back(method->name());
  result.n_peers = modes.size();
  result.prompts = options.prompts;
  result.runs.assign(methods.size(), std::vector<SpecRun>(options.prompts.size()));
  run_all(options, engine, methods, progress, result);
  find_differences(options, engine, result);
  choose_sample(engine, result);
  return result;
}

}  // namespace forerun
