// Answers many requests at once, a pass of the model at a time.
//
// step() is the whole life of a token:
//
//   admit      waiting requests take free slots of the KV cache
//   draft      planners fill a tree of proposals for each decoding request
//   forward    one pass over all trees and as much of the new prompts as fits
//   verify     the accepted path of each tree becomes text, the rest is forgotten
//
// Requests do not influence each other's text: each has its own sampler, seed and drafters,
// and on CPUs the bits of a row do not depend on the others of a pass. What a request's
// callbacks throw, or its drafters when they begin and learn, ends this request alone.
//
// Not thread-safe: use it from the thread that the model's device belongs to.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/stopwatch.h"
#include "cost/pass_costs.h"
#include "engine/running_request.h"
#include "model/executor.h"
#include "model/slots.h"
#include "plan/planner.h"
#include "sampling/logprobs.h"
#include "text/vocabulary.h"
#include "verify/verify.h"

namespace forerun {

struct StepperOptions {
  int n_slots = 1;       // requests that are answered at once; the others wait
  int n_context = 4096;  // tokens that each may have
};

// How a request is speculated on: not at all, or by a planner, which outlives it.
struct Speculation {
  Planner* planner = nullptr;
  AcceptRule accept = AcceptRule::kMatch;
  // Gets the prompt and the answer when the request ends in good order. May be empty.
  std::function<void(std::span<const TokenId> prompt, std::span<const TokenId> answer)> on_answer = {};
};

// What comes of a request: an answer, or the exception that ended it.
using RequestResult = std::variant<Generation, std::exception_ptr>;

class Stepper {
 public:
  // All outlive it. The executor's cache has n_slots * n_context cells or more. `costs` are told what
  // passes take; may be nullptr.
  Stepper(Executor& executor, const Vocabulary& vocabulary, const StepperOptions& options,
          PassCosts* costs = nullptr);

  // Throws Error when the request makes no sense; others are not affected.
  RequestId submit(Request request, const Speculation& speculation = {});
  void cancel(RequestId request);

  // Ends a request at once, if it is not over, and forgets what came of it. Not from a callback,
  // where cancel() is what there is.
  void discard(RequestId request);

  // Computes one pass. false: there was nothing to do. Throws Error when the device fails, and
  // what a method throws that drafts: the requests are as before the pass then, and the next call
  // tries again.
  bool step();

  // How many requests wait, or have a prompt that is not read yet.
  int n_reading() const;

  // How much of a request's prompt is read; 1 when it is over.
  double share_read(RequestId request) const;

  // What came of a request that is over; once. nullopt: it is not over. It is kept until it is
  // taken or discarded.
  std::optional<RequestResult> take(RequestId request);

  // Of all requests so far.
  const SpeculationStatistics& statistics() const { return statistics_; }

  Slots& slots() { return slots_; }

 private:
  struct Active {
    RequestId id;
    std::unique_ptr<RunningRequest> request;
    Slot* slot = nullptr;  // nullptr: waits
    Speculation speculation;
    std::unique_ptr<RequestPlan> plan;  // nullptr: no drafts
    bool is_cancelled = false;
    Stopwatch phase;  // reading the prompt, answering
    DraftTree tree;
    // Of this pass.
    size_t first_row = 0;
    size_t n_rows = 0;

    bool is_decoding() const { return slot != nullptr && slot->text.size() >= request->prompt().size(); }
    bool is_planned() const { return is_decoding() && plan != nullptr; }
  };

  // Calls `work` with every request. What it throws ends the request; those that are over then
  // are forgotten.
  template <typename Work>
  void for_each_active(const Work& work);
  void admit();
  void admit(Active& active);
  void end_cancelled();
  void draft();
  // Whether the request's text must not depend on the shape of passes, where bits do.
  bool is_exact(const Active& active) const {
    return executor_.min_rows() > 1 && active.speculation.accept == AcceptRule::kMatch;
  }
  DraftLimits limits_of(const Active& active) const;
  void draft(std::span<Active* const> requests);  // of one planner
  void fill_pass();
  void add_tree_rows(Active& active);
  void add_prompt_rows(Active& active, size_t n);
  void forward();
  void forget_pass();
  void advance(Active& active);
  void watch_cost();
  std::optional<StopReason> after_prompt(Active& active);
  std::optional<StopReason> after_tree(Active& active);
  void count(Active& active);
  // Throws, and changes nothing, where those throw who learn from an answer.
  void end(Active& active, RequestResult result);
  // Gives back what the request has, which is over.
  void release(Active& active);

  Executor& executor_;
  const Vocabulary& vocabulary_;
  StepperOptions options_;
  PassCosts* costs_;
  Slots slots_;
  int64_t n_submitted_ = 0;
  std::vector<std::unique_ptr<Active>> active_;  // in the order they came; those with slots first
  std::map<RequestId, RequestResult> results_;
  SpeculationStatistics statistics_;

  // Reused from pass to pass.
  Pass pass_;
  PassLoad load_;
  double pass_seconds_ = 0;
  double draft_seconds_ = 0;  // since the last pass
  const PassResult* pass_result_ = nullptr;
  std::vector<NodeId> nodes_;
  std::vector<NodeId> path_;
  std::vector<Active*> planned_;  // those of one planner next to each other
  std::vector<PlanJob> jobs_;
  Verdict verdict_;
  SamplerScratch sampler_scratch_;
  LogprobScratch logprob_scratch_;
};

}  // namespace forerun
