// What is asked of an engine.
#pragma once

#include <forerun/generation.h>
#include <forerun/generation_options.h>
#include <forerun/pooling.h>
#include <forerun/token.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace forerun {

enum class RequestId : int64_t {};  // a request of one engine, in the order they came

// What one pass of an engine did.
struct StepResult {
  bool has_computed = false;             // false: there was nothing to do
  std::vector<RequestId> finished = {};  // requests that are over since the last one, to be taken

  explicit operator bool() const { return has_computed; }
};

// One of an engine's ways to speculate; 0: that of its options.
enum class SpeculationId : int32_t {};

struct BenchmarkRecord;

// What an answer got by one pass. What it refers to is valid during the call.
struct Chunk {
  std::string_view text;  // in whole UTF-8 characters; empty while it may be a stop text's beginning
  std::span<const TokenId> tokens;
  std::span<const size_t> ends;  // per token: where its text ends in `text`
  std::span<const std::optional<DraftSource>>
      origins;                              // per token: where it had been drafted, if it was
  std::span<const TokenLogprobs> logprobs;  // per token, if asked for
  // Of the request until now.
  const Timings& timings;
  const SpeculationStatistics& speculation;
};

// How far a prompt is read.
struct PromptProgress {
  int n_prompt = 0;  // its tokens
  int n_cached = 0;  // of these, those whose keys and values were still there
  int n_read = 0;    // those and what was read since
  double ms = 0;     // that it took
};

struct Request {
  std::vector<TokenId> prompt = {};
  GenerationOptions options = {};
  // These are called by step(), and may submit() and cancel(), but not step(), generate() or take().
  // What they throw ends this request and no other: take() throws it.

  // Gets the answer as it is made. May be empty.
  std::function<void(const Chunk& chunk)> on_chunk = {};
  // Told when the prompt's turn comes, and after every pass that read some of it. May be empty.
  std::function<void(const PromptProgress& progress)> on_progress = {};
  // Asked before every pass; true ends the generation. May be empty.
  std::function<bool()> is_cancelled = {};

  // Those with a higher one are begun first; of equal ones those that came first.
  int priority = 0;

  SpeculationId speculation{0};
  // Tokens that are drafted for a pass at most; 0: none. -1: as many as pay.
  int max_draft = -1;
  // What the answer is expected to be, or nearly: a file that is to come back with a few changes. It is
  // drafted from, where drafts are chosen by what they cost (--tree auto).
  std::vector<TokenId> prediction = {};
  // Whether the answer may be added to the live datastore, where there is one.
  bool may_be_stored = true;
  // Whether what earlier texts left in the cache may be used: the answer is the same, later.
  bool may_reuse = true;

  // Wanted is the prompt's vector (Generation::embedding), and no answer. It is read as if nothing had
  // been before, whatever `may_reuse` says, and its text is not kept for later ones.
  std::optional<Pooling> embedding = std::nullopt;

  // For benchmarks: what they tell the engine, and what it tells them (forerun/benchmark.h). May be
  // null.
  std::shared_ptr<BenchmarkRecord> benchmark = nullptr;
};

}  // namespace forerun
