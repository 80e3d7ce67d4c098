// Answers many requests at once, a pass of the model at a time.
//
// step() is the whole life of a token:
//
//   admit      waiting requests take slots of the KV cache, as far as there are cells
//   draft      planners fill a tree of proposals for each decoding request
//   forward    one pass over all trees and as much of the new prompts as fits
//   grow       the accepted path of each tree becomes text, the rest is forgotten
//
// Where cells run out, the request that came last gives its own back and waits: it is read
// again later and goes on where it was.
//
// Requests do not influence each other's text: each has its own sampler, seed and drafters,
// and on CPUs the bits of a row do not depend on the others of a pass. What a request's
// callbacks throw ends this request alone; where drafts fail, it goes on without.
//
// submit(), cancel(), take(), wait(), wake() and statistics() may be called from any thread, all but
// wait() from callbacks too; the rest from the thread that the model's device belongs to.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "cost/pass_costs.h"
#include "engine/active_request.h"
#include "engine/inbox.h"
#include "engine/pass_drafts.h"
#include "engine/pass_rows.h"
#include "engine/step_record.h"
#include "engine/text_growth.h"
#include "model/executor.h"
#include "model/slots.h"
#include "text/vocabulary.h"

namespace forerun {

struct StepperOptions {
  int n_slots = 1;       // requests that are answered at once; the others wait
  int n_context = 4096;  // tokens that each may have
  // How long the rows of prompts may make a pass at most that others get tokens from.
  double prompt_seconds = std::numeric_limits<double>::infinity();
  // Gets what went wrong beside the requests. May be empty.
  std::function<void(std::string_view)> warn = {};
};

// What comes of a request: an answer, or the exception that ended it.
using RequestResult = std::variant<Generation, std::exception_ptr>;

class Stepper {
 public:
  // All outlive it. The executor's cache has n_context cells or more. `costs` are told what
  // passes take; may be nullptr.
  Stepper(Executor& executor, const Vocabulary& vocabulary, const StepperOptions& options,
          PassCosts* costs = nullptr);

  // Throws Error when the request makes no sense; others are not affected.
  RequestId submit(Request request, const Speculation& speculation = {});
  void cancel(RequestId request) { inbox_.cancel(request); }

  // Ends a request at once, if it is not over, and forgets what came of it. Not from a callback,
  // where cancel() is what there is.
  void discard(RequestId request);

  // Computes one pass. Throws Error when the device fails: the requests are as before the pass
  // then, and the next call tries again.
  StepResult step();

  // Returns when something was submitted or cancelled, or after wake(), or after that time.
  void wait(std::chrono::milliseconds most) { inbox_.wait(most); }
  void wake() { inbox_.wake(); }

  // How many requests wait, or have a prompt that is not read yet.
  int n_reading() const;

  // How much of a request's prompt is read; 1 when it is over.
  double share_read(RequestId request) const;

  // What came of a request that is over; once. nullopt: it is not over. It is kept until it is
  // taken or discarded.
  std::optional<RequestResult> take(RequestId request);

  // As of the last step.
  EngineStatistics statistics() const;

  Slots& slots() { return slots_; }

 private:
  // Calls `work` with every request. What it throws ends the request; those that are over then
  // are forgotten.
  template <typename Work>
  void for_each_active(const Work& work);
  void take_inbox();
  void end_cancelled();
  void admit();
  void admit(ActiveRequest& active);
  // Lets requests wait, those that came last, until all that decode have a cell for their next token.
  void find_cells();
  void suspend_last();
  void draft();
  int max_prompt_rows() const;
  void fill_pass();
  void add_prompts();
  void forward();
  void forget_pass();
  void advance(ActiveRequest& active);
  void observe(double seconds);  // that the pass took
  // Throws, and nothing has ended, where those throw who learn from an answer.
  void end(ActiveRequest& active, RequestResult result);
  // What the request read stays in the cache, unless nobody is going to want it.
  void give_slot_back(ActiveRequest& active);
  // Gives back what the request has, which is over.
  void release(ActiveRequest& active);
  void warn_of_failed_drafts(ActiveRequest& active);

  Executor& executor_;
  const Vocabulary& vocabulary_;
  StepperOptions options_;
  Slots slots_;
  Inbox inbox_;
  std::vector<std::unique_ptr<ActiveRequest>> active_;  // by priority, then in the order they came
  std::vector<RequestId> finished_;                     // by this step

  std::mutex mutex_;  // of what other threads take:
  std::map<RequestId, RequestResult> results_;

  PassDrafts drafts_;
  PassRows rows_;
  TextGrowth growth_;
  PassLoad pass_load_;
  StepRecord record_;
};

}  // namespace forerun
