// A request that waits or runs, as those see it who put passes together.
#pragma once

#include <forerun/request.h>

#include <exception>
#include <functional>
#include <memory>
#include <span>

#include "core/stopwatch.h"
#include "engine/running_request.h"
#include "model/slots.h"
#include "plan/planner.h"
#include "verify/verify.h"

namespace forerun {

// How a request is speculated on: not at all, or by a planner, which outlives it.
struct Speculation {
  Planner* planner = nullptr;
  AcceptRule accept = AcceptRule::kMatch;
  // Gets the prompt and the answer when the request ends in good order. May be empty.
  std::function<void(std::span<const TokenId> prompt, std::span<const TokenId> answer)> on_answer = {};
};

struct ActiveRequest {
  RequestId id;
  std::unique_ptr<RunningRequest> request;  // nullptr: it is over
  Slot* slot = nullptr;                     // nullptr: waits
  Speculation speculation;
  std::unique_ptr<RequestPlan> plan;  // nullptr: no drafts
  bool is_cancelled = false;
  bool is_counted = false;  // among those that are over
  Stopwatch phase;          // reading the prompt, answering
  DraftTree tree;
  int n_failed_drafts = 0;             // one after the other
  std::exception_ptr draft_failure{};  // what ended its drafts, until somebody says so
  // Of this pass.
  size_t first_row = 0;
  size_t n_rows = 0;
  Verdict verdict{};  // on its draft
  std::exception_ptr verdict_failure{};

  // Tokens of the text that must be in the cache before the next one is drawn: all of a prompt,
  // whose last row gives the first token; of a text that goes on all but its last one, which is a
  // row of the pass that draws.
  size_t n_to_read() const { return request->text().size() - (request->answer().empty() ? 0 : 1); }
  size_t n_unread() const { return n_to_read() - (slot != nullptr ? slot->text.size() : 0); }
  bool is_decoding() const { return slot != nullptr && !request->answer().empty() && n_unread() == 0; }
  bool is_reading() const { return slot != nullptr && !is_decoding(); }
  bool is_planned() const { return is_decoding() && plan != nullptr; }

  // Drafts are a help and no more: where `work` on them fails, the request goes on without.
  template <typename Work>
  void try_drafting(const Work& work) {
    try {
      work();
    } catch (...) {
      draft_failure = std::current_exception();
      plan = nullptr;
    }
  }
};

}  // namespace forerun
