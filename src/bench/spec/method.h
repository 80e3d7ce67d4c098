// What `bench spec` compares: ways to answer a prompt, ours and others.
#pragma once

#include <forerun/engine.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forerun {

// What a method made of one prompt, all turns together.
struct SpecRun {
  std::vector<TokenId> tokens;
  std::vector<std::optional<DraftSource>> origins;  // ours only
  std::vector<TokenLogprobs> logprobs;              // ours only, if asked for
  double prompt_ms = 0;                             // of the whole turn, shared equally
  double decode_ms = 0;                             // the same, shared by what each took of it
  DraftCounts drafts;                               // n_tested is 0 where that is not known
  SpeculationStatistics speculation;
  std::vector<DraftCounts> steps;  // ours only

  void add(const SpecRun& other);
};

struct SpecAnswer {
  std::string text;
  SpecRun run;
};

// What a turn took.
struct TurnTime {
  double prompt_ms;
  double decode_ms;
};
// Answers of one turn, which waited for each other, and of which each says what its decoding took: what
// it gets is its share of the whole.
void share_time(std::span<SpecAnswer> answers, const TurnTime& time);

// Methods take turns; only one answers at a time, and the others do not disturb it.
class SpecMethod {
 public:
  virtual ~SpecMethod() = default;

  // As results call it.
  virtual const std::string& name() const = 0;
  // Answers all prompts, as many at once as it may, reading each as a whole. Throws Error.
  virtual std::vector<SpecAnswer> answer(std::span<const std::vector<TokenId>> prompts) = 0;
};

struct ForerunMethodOptions {
  std::string name;
  SpeculationId speculation{};  // one of the engine's
  GenerationOptions generation;
  // Requests say their answer, which plain decoding finds beforehand and nobody times.
  bool tells_answers = false;
};
// One of our drafting methods. The engine's first speculation is plain decoding; it outlives this.
std::unique_ptr<SpecMethod> make_forerun_method(Engine& engine, ForerunMethodOptions options);

}  // namespace forerun
