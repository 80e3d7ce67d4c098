// Puts together what an engine speculates with: drafters, planner, datastores.
//
// Not thread-safe.
#pragma once

#include <forerun/engine.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cost/pass_costs.h"
#include "draft/methods.h"
#include "engine/stepper.h"
#include "model/executor.h"
#include "plan/planner.h"
#include "retrieval/store/datastore.h"
#include "retrieval/store/preload.h"
#include "text/vocabulary.h"

namespace forerun {

class Speculator {
 public:
  using Warn = std::function<void(std::string_view)>;
  struct Resources {
    const Vocabulary& vocabulary;
    Executor& executor;  // verifies; it and what its passes cost outlive the speculator
    PassCosts& costs;
    Warn warn;  // may be empty
    std::function<std::shared_ptr<DraftModel>(const DraftModelChoice&)> draft_model;
  };
  // Opens the datastores. A store makes answers faster and never costs one: what is wrong with
  // it is a warning, except that {kNotFound} a named store does not exist or {kInvalidArgument}
  // it is not a store of this vocabulary. The other resources are used while it is made only.
  // Throws Error.
  Speculator(const SpeculationOptions& options, const Resources& resources);
  // Keeps what was learnt for the next run.
  ~Speculator();
  Speculator(const Speculator&) = delete;
  Speculator& operator=(const Speculator&) = delete;

  // What requests are submitted with; refers to this.
  Speculation speculation();
  // Whether requests must say their answer.
  bool needs_answers() const { return needs_answers_; }

 private:
  // An answer goes to the live datastore, with a little of what came before it. What goes
  // wrong there is reported and does not concern the request.
  void keep(std::span<const TokenId> prompt, std::span<const TokenId> answer);
  void open_stores(const SpeculationOptions& options, const Vocabulary& vocabulary);
  // To add to; where that cannot be, to read from.
  void open_live_store(const std::filesystem::path& path, const StoreOptions& options);
  void warn(const std::string& message) const;
  // Of all stores together, those that can be searched without waiting for the disk.
  std::shared_ptr<const SegmentList> segments() const;

  Warn warn_;
  std::vector<std::unique_ptr<Datastore>> stores_;
  Preload preload_;
  Datastore* live_ = nullptr;  // one of them
  AcceptRule accept_ = AcceptRule::kMatch;
  bool needs_answers_ = false;
  std::unique_ptr<Planner> planner_;  // nullptr: no drafts
  uint64_t learnt_key_ = 0;           // of what it learns
};

}  // namespace forerun
