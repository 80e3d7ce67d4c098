// forerun as a library: load a model, submit requests, step.
//
//   forerun::Engine engine({.model = "smollm2"});
//   const auto prompt = engine.tokenizer().chat_prompt({{"user", "Why is the sky blue?"}});
//   const forerun::Generation answer = engine.generate({.prompt = prompt});
//   std::cout << answer.text << "\n";
//
// Many requests at once: submit() each, call step() until they are over, take() what came
// of them. Text arrives through Request::on_chunk while step() runs.
//
// One thread makes an engine, steps it, and calls whatever is not said to be for any thread. From any
// thread, at any time: submit(), cancel(), take(), wait(), wake(), statistics(), and what tells of the
// model; also from a request's own functions, but for take() and wait(). Whatever is the caller's or
// the environment's fault throws forerun::Error. What a caller's own function throws comes
// back to the caller as it is, and ends no more than its own request.
#pragma once

#include <forerun/chat_message.h>
#include <forerun/engine_options.h>
#include <forerun/error.h>
#include <forerun/export.h>
#include <forerun/generation.h>
#include <forerun/model_facts.h>
#include <forerun/pooling.h>
#include <forerun/request.h>
#include <forerun/statistics.h>
#include <forerun/tokenizer.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

class FORERUN_API Engine {
 public:
  // Options that make no sense are an Error before anything is loaded.
  explicit Engine(const EngineOptions& options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  const ModelFacts& model() const;
  Tokenizer tokenizer() const;
  int n_context() const;  // tokens a request may have
  // Where it computes, and with what: "cpu", "Intel(R) Xeon(R) ...", "avx512" (ours; empty on
  // GPUs), CPU threads.
  struct Hardware {
    std::string device;
    std::string description;
    std::string kernels;
    int n_threads;
    std::string placement;  // which layers are where; "": all on the device
  };
  Hardware hardware() const;

  // Another way to speculate, for requests that name it. It learns for itself.
  SpeculationId add_speculation(const SpeculationOptions& options);

  // Answers one request, and whatever else was submitted meanwhile. Throws what ended it, or made
  // a pass fail: either way it is over.
  Generation generate(Request request);

  // Throws Error when the request makes no sense; others are not affected.
  RequestId submit(Request request);
  // Ends a request before its next pass; it is over then, with what it has. take() it all the
  // same: what came of a request is kept until it is taken.
  void cancel(RequestId request);
  // One pass of the model for all requests. Throws Error when the device fails: the requests are as
  // before, so that they can be tried again, or cancelled.
  StepResult step();
  // Returns when there is something to do again: after a submit(), a cancel() or a wake(), or after that
  // time.
  void wait(std::chrono::milliseconds most);
  void wake();
  // How many requests wait, or have a prompt that is not read yet.
  int n_reading() const;
  // The answer of a request that is over, once; nullopt: it is not over. Throws what ended it,
  // where it failed: an Error, or what one of its functions threw.
  std::optional<Generation> take(RequestId request);

  // As of the last step.
  EngineStatistics statistics() const;

  // Keeps the latest request's keys and values in a file, and takes them from it again: a
  // prompt that begins like its text is then read only from where it differs.
  void save_context(const std::filesystem::path& path) const;
  void restore_context(const std::filesystem::path& path);
  // Lets later prompts be read as a whole, as if nothing had been before. Only while no
  // request runs.
  void forget_contexts();

 private:
  class FORERUN_INTERNAL Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
