// What to draft and how much of it to verify: the seam that every way of deciding implements.
//
// A Planner belongs to the engine: it has the drafters, and for every pass it fills the trees of the
// requests that decode. It makes a RequestPlan for each request.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "draft/model/model_drafter.h"
#include "plan/acceptance_model.h"
#include "request/request_view.h"

namespace forerun {

// Tokens that are drafted and verified at once at most: no published method has more.
inline constexpr int kLargestTree = 128;

// What a planner learnt, in numbers: of chances, and of each model that drafts.
struct Learnt {
  std::vector<float> acceptance = {};  // empty: too little
  std::vector<std::vector<float>> models = {};
};

// The pass that is being put together.
struct PassLoad {
  int n_decoding = 0;     // requests that get their next token from it
  int n_prompt_rows = 0;  // rows of prompts that share it
};

// What a pass took.
struct PassCost {
  PassLoad load;
  int n_rows;            // all of them
  int n_context;         // tokens of the decoding requests' texts together
  double draft_seconds;  // finding drafts for it, and telling drafters what became of the last
};

// How many times as fast as plain decoding text came of late: what time is worth in the long run.
class SpeedRecord {
 public:
  // A step gave `n_tokens` and took as long as `n_plain` steps of plain decoding.
  void add(double n_tokens, double n_plain) {
    n_tokens_ = kKept * n_tokens_ + n_tokens;
    n_plain_ = kKept * n_plain_ + n_plain;
  }
  // `usual` is what is known beforehand.
  double speedup(double usual) const { return (n_tokens_ + kFirst * usual) / (n_plain_ + kFirst); }

 private:
  static constexpr double kKept = 0.96;  // with every step
  static constexpr double kFirst = 6;    // steps that what is known beforehand is worth

  double n_tokens_ = 0;
  double n_plain_ = 0;
};

// One request's part of a planner: its drafters, and what they propose now.
class RequestPlan {
 public:
  // Both outlive it.
  RequestPlan(const DrafterSet& drafters, const RequestView& request);

  const RequestView& request() const { return request_; }
  int n_context() const { return request_.n_context(); }

  // A pass over the tree that was planned is done; Planner::append() follows.
  void observe(const DraftTree& tree, const TargetTokens& target);
  // The request ended in good order; others may learn from its text.
  void finish();

  std::vector<std::unique_ptr<RequestDrafter>> texts;
  std::vector<std::unique_ptr<RequestModelDrafter>> models;
  std::vector<std::unique_ptr<RequestDrafter>> given;  // by what the caller expects or demands
  // For planners that learn.
  RequestAcceptance acceptance;
  SpeedRecord speed;
  ProposedTree proposed;        // by all drafters together, for this pass
  std::vector<double> chances;  // of its nodes
  DraftTree drafted;            // by a model alone
  DraftTree looked_up;          // by one drafter of texts
  // What texts proposed, while a model drafts.
  DraftTree hint;
  std::vector<double> hint_chances;
  bool is_planned = false;  // a pass that was planned for gives the next tokens
  // What drafts of each model would have brought so far, in tokens, beside those of models that need not
  // read the text first.
  struct Promise {
    double gain = 0;
    int n_steps = 0;
  };
  std::vector<Promise> promises;

 private:
  const RequestView& request_;
};

// A request that is to be planned for.
struct PlanJob {
  RequestPlan* request;
  DraftLimits limits;
  DraftTree* tree;  // empty
};

// The largest tree when so many requests share a pass.
using TreeSize = std::function<int(int n_requests)>;

class Planner {
 public:
  // No tree is larger than `largest`.
  Planner(DrafterSet drafters, TreeSize largest)
      : drafters_(std::move(drafters)), largest_(std::move(largest)) {}
  virtual ~Planner() = default;

  // Both the planner and the request outlive what it returns.
  std::unique_ptr<RequestPlan> begin(const RequestView& request) {
    return std::make_unique<RequestPlan>(drafters_, request);
  }
  bool wants_prompt_state() const { return drafters_.wants_prompt_state(); }

  // Fills the trees of one pass, within their limits.
  void plan(std::span<const PlanJob> jobs, const PassLoad& load);
  // That pass is done; for each request that was planned for append() follows.
  virtual void observe(const PassCost& /*cost*/) {}
  // The request's text grew by these tokens.
  virtual void append(RequestPlan& request, std::span<const TokenId> tokens);

  // What was learnt, for another run to begin with; restore() does nothing with what is not this
  // planner's.
  virtual Learnt learnt() const { return {}; }
  virtual void restore(const Learnt& /*learnt*/) {}

 protected:
  const DrafterSet& drafters() const { return drafters_; }

 private:
  // plan(), for trees whose limits are not above the largest.
  virtual void fill(std::span<const PlanJob> jobs, const PassLoad& load) = 0;

  DrafterSet drafters_;
  TreeSize largest_;
  std::vector<PlanJob> limited_;  // jobs of this pass
};

}  // namespace forerun
