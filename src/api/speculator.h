// Puts together what an engine speculates with: the method, the budget, the datastores.
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

#include "budget/calibration.h"
#include "budget/tree_budget.h"
#include "draft/methods.h"
#include "engine/stepper.h"
#include "model/executor.h"
#include "retrieval/store/datastore.h"
#include "text/vocabulary.h"

namespace forerun {

class Speculator {
 public:
  using Warn = std::function<void(std::string_view)>;
  struct Resources {
    const Vocabulary& vocabulary;
    Executor& executor;                         // verifies; outlives the speculator
    std::function<const Calibration&()> costs;  // of passes; asked where they are needed
    Warn warn;                                  // may be empty
    std::function<std::shared_ptr<DraftModel>(const DraftModelChoice&)> draft_model;
  };
  // Opens the datastores. A store makes answers faster and never costs one: what is wrong with
  // it is a warning, except that {kNotFound} a named store does not exist or {kInvalidArgument}
  // it is not a store of this vocabulary. The other resources are used while it is made only.
  // Throws Error.
  Speculator(const SpeculationOptions& options, const Resources& resources);

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
  // Of all stores together.
  std::shared_ptr<const SegmentList> segments() const;

  Warn warn_;
  std::vector<std::unique_ptr<Datastore>> stores_;
  Datastore* live_ = nullptr;  // one of them
  AcceptRule accept_ = AcceptRule::kMatch;
  bool needs_answers_ = false;
  std::unique_ptr<TreeBudget> budget_;
  std::unique_ptr<DraftMethod> method_;
};

}  // namespace forerun
