// forerun as a library: load a model, submit requests, step.
//
//   forerun::Engine engine({.model = "smollm2"});
//   const auto prompt = engine.chat_prompt({{"user", "Why is the sky blue?"}});
//   const forerun::Generation answer = engine.generate({.prompt = prompt});
//   std::cout << answer.text << "\n";
//
// Many requests at once: submit() each, call step() until they are over, take() what came
// of them. Text arrives through Request::on_text while step() runs.
//
// Not thread-safe: use an engine from the thread that made it. Whatever is the caller's or
// the environment's fault throws forerun::Error. What a caller's own function throws comes
// back to the caller as it is, and ends no more than its own request.
#pragma once

#include <forerun/chat_message.h>
#include <forerun/error.h>
#include <forerun/generation.h>
#include <forerun/speculation.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// How drafts are made and checked. They change how fast a text comes, not the text.
struct SpeculationOptions {
  // "auto" (what pays, or nothing), "none", or a method's name (`forerun run --help`).
  std::string method = "auto";
  // Which drafted tokens are taken: "match" gives the text that there is without drafts;
  // "target", "leviathan" and "rejection" are the rules of papers, which keep its distribution.
  std::string accept = "match";
  // How many drafted tokens are verified at once: "auto" (by measured cost), "roofline",
  // "own" (as many as the method's authors do), or a number. Empty: what suits the method.
  std::string tree = {};
  // Options of methods by name, such as {"pld-ngram", "3"}.
  std::map<std::string, std::string> options = {};
  // Datastores never cost an answer: one that is damaged, cannot be read or cannot be written
  // (as while another process does) gives a warning (EngineOptions::warn) and is used as far as
  // possible. Only one that does not exist or is for another vocabulary is an Error.

  // Datastores to search. Nothing is added to them.
  std::vector<std::filesystem::path> datastores = {};
  // A datastore to search and to add answers to. Empty: nothing is stored.
  std::filesystem::path live_datastore = {};
};

struct EngineOptions {
  std::string model = "smollm2";  // path of a GGUF file, or a name
  std::string device = "auto";    // "auto", "cpu", "cuda", "cuda:1"
  int n_threads = 0;              // CPU threads; 0: one per core
  bool pin_threads = true;        // bind each to a CPU, where the system allows it
  int n_parallel = 1;             // requests that are answered at once; the others wait
  int n_context = 0;            // tokens each may have; 0: what the model was trained for, at most 8192
  std::string kv_type = "f16";  // of cached keys and values: "f16", "f32", "q8_0"
  // On a GPU: the text with speculation is exactly the text without. Its kernels round
  // differently with another number of rows, so this fills every small pass up to a fixed
  // number and drafts chains instead of trees; docs/speculation.md has the price. For one
  // request at a time. On a CPU texts are always the same.
  bool exact = false;
  SpeculationOptions speculation = {};
  // Gets what is being done ("loading", "reading the prompt") and its share that is done. May be
  // empty. What it throws ends what is being done: making the engine, generate().
  std::function<void(std::string_view what, double share)> progress = {};
  // Gets what went wrong beside the requests (a datastore's disk is full, or another process
  // writes to it), as one line; from any thread. May be empty. What it throws is lost.
  std::function<void(std::string_view)> warn = {};
};

// One of an engine's ways to speculate; 0: that of its options.
enum class SpeculationId : int32_t {};

struct Request {
  std::vector<TokenId> prompt = {};
  GenerationOptions options = {};
  // Both are called by step() and may submit() and cancel(). What they throw ends this request
  // and no other: take() throws it.

  // Gets text as it is made, in whole UTF-8 characters. May be empty.
  std::function<void(std::string_view text)> on_text = {};
  // Asked before every pass; true ends the generation. May be empty.
  std::function<bool()> is_cancelled = {};
  SpeculationId speculation{0};
  // The answer, where it is known beforehand: for benchmarks of drafts that stop where they should
  // (the option lookahead, "oracle"). The text does not depend on it.
  std::optional<std::vector<TokenId>> known_answer = std::nullopt;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  int n_vocab() const;
  int n_context() const;          // tokens a request may have
  int n_context_trained() const;  // tokens that the model was trained for
  // Where it computes, and with what: "cpu", "Intel(R) Xeon(R) ...", "avx512" (ours; empty on
  // GPUs), CPU threads.
  struct Hardware {
    std::string device;
    std::string description;
    std::string kernels;
    int n_threads;
  };
  Hardware hardware() const;
  bool has_chat_template() const;

  // The tokens of a text; `parse_special`: the names of control tokens in it are those tokens.
  std::vector<TokenId> tokenize(std::string_view text, bool parse_special = false) const;
  // The tokens of a conversation that the model is to go on with.
  std::vector<TokenId> chat_prompt(const std::vector<ChatMessage>& messages) const;
  // The bytes of one token; of control tokens their names.
  std::string piece(TokenId token) const;

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
  // One pass of the model for all requests. false: there was nothing to do. Throws Error when the
  // device fails: the requests are as before, so that they can be tried again, or cancelled.
  bool step();
  // How many requests wait, or have a prompt that is not read yet.
  int n_reading() const;
  // The answer of a request that is over, once; nullopt: it is not over. Throws what ended it,
  // where it failed: an Error, or what one of its functions threw.
  std::optional<Generation> take(RequestId request);

  // Of all requests that are over.
  const SpeculationStatistics& statistics() const;

  // Keeps the latest request's keys and values in a file, and takes them from it again: a
  // prompt that begins like its text is then read only from where it differs.
  void save_context(const std::filesystem::path& path) const;
  void restore_context(const std::filesystem::path& path);
  // Lets later prompts be read as a whole, as if nothing had been before. Only while no
  // request runs.
  void forget_contexts();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
