// Where drafts come from that take passes: a model drafts, a token of each request at a time. The seam
// that the model with blocks left out (layer_skipping.h) and a smaller model (draft_model.h) implement.
//
// A ModelDrafter belongs to the engine. It makes a RequestModelDrafter for each request, and grows
// chains of tokens for all requests of a pass together.
//
// A chain ends behind a token that ends the answer, and behind the one at which a stopping rule says so:
// the drafter's own (stopping/stopping_rule.h), that of whoever asked for the draft, or, where there is
// neither, behind the first token whose probability (of the model's own distribution, before
// temperature) is below a threshold. With `siblings` each of its tokens has the next likeliest beside
// it, the more the less sure it is: SWIFT's tree.
//
// Tokens are drawn with the target's own noise (sampling/sampler.h), so that a draft whose
// distribution is like the target's mostly draws the target's token. Where the verifier
// compares distributions, draws have noise of their own and the chain no siblings.
//
// Tokens that texts propose (ModelDraftJob::hint) are read beside the chain's last one, where their
// chances are worth the rows. They are a guess at the draft as drafts are a guess at the text: as
// many as it would draw itself, the chain grows by in one pass, and it is the same chain.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/option_visitor.h"
#include "cost/pass_costs.h"
#include "draft/drafter.h"
#include "layers/layer_selector.h"
#include "model/executor.h"

namespace forerun {

class ChainGrower;
class RequestModelDrafter;

struct ChainOptions {
  int tokens = 25;         // of a chain at most
  double threshold = 0.8;  // a chain ends behind a token that is less probable
  bool siblings = false;

  void describe(OptionVisitor& visitor) {
    visitor.visit({"tokens", "Tokens drafted at most (lookahead fixed and disco: as they say)"}, tokens,
                  {1, 127});
    visitor.visit({"threshold", "Stop behind a token that is less probable"}, threshold, {0.0, 1.0});
    visitor.visit({"siblings", "Draft the next likeliest tokens too (accept match and target)"},
                  siblings);
  }
};

// A draft that is wanted.
struct ModelDraftJob {
  RequestModelDrafter* drafter;
  DraftPlan plan;
  DraftLimits limits;
  DraftTree* tree;               // empty
  int n_requests = 1;            // that get a token by the same pass
  StoppingRule* rule = nullptr;  // of who asks; nullptr: the method's own
  // What texts propose, and the chance that the text takes each node. nullptr: nothing.
  const DraftTree* hint = nullptr;
  std::span<const double> hint_chances = {};
};

// A token of a chain's path whose keys and values are in a scratch cell.
struct ReadToken {
  TokenId token;
  NodeId cell;
};

// Where a draft begins, in the cache of the executor that drafts.
struct ChainStart {
  SequenceId sequence;
  std::span<const TokenId> unread;  // the end of the text that is not committed there; not empty
  // Gets what was read on the chain's path, whose scratch cells stay. nullptr: they go with the draft.
  std::vector<ReadToken>* read = nullptr;
};

class RequestModelDrafter {
 public:
  virtual ~RequestModelDrafter() = default;

  // How it would draft now; asked once before every draft. May run passes of its own over the
  // request's text. nullopt: better not to draft.
  virtual std::optional<DraftPlan> plan() = 0;
  // Seconds that go by before a draft can begin: once, not for every draft.
  virtual double seconds_to_read() const { return 0; }
  // How many tokens the answer is likely to get yet.
  virtual double n_expected() const { return request_.n_left(); }

  // Reads what has to be read, and says where the draft begins. nullopt: there is no room.
  virtual std::optional<ChainStart> start() = 0;

  // The text grew by these tokens.
  virtual void append(std::span<const TokenId> tokens);
  // The request ended in good order.
  virtual void finish() {}

  const RequestView& request() const { return request_; }
  int n_context() const { return request_.n_context(); }

 protected:
  // Both outlive it. `stopping` may be nullptr.
  RequestModelDrafter(const RequestView& request, StoppingRule* stopping);
  // What became of the latest chain.
  virtual void observe(const ChainOutcome& /*outcome*/) {}

 private:
  friend class ChainGrower;

  const Sampler& sampler() const { return own_sampler_ ? *own_sampler_ : request_.sampler(); }

  const RequestView& request_;
  StoppingRule* stopping_;                // nullptr: a threshold, or who asks for drafts
  std::unique_ptr<Sampler> own_sampler_;  // nullptr: the target's
  std::vector<TokenId> chain_;            // the latest draft, without siblings
  std::vector<double> probabilities_;     // of its tokens
  int max_tokens_ = 0;                    // that it could have had
};

class ModelDrafter {
 public:
  virtual ~ModelDrafter();
  // Both the drafter and the request outlive what it returns.
  virtual std::unique_ptr<RequestModelDrafter> begin(const RequestView& request) = 0;
  DraftSource source() const { return source_; }
  // Whether it needs RequestView::prompt_state(), which costs the prompt's pass a little.
  virtual bool wants_prompt_state() const { return false; }

  // What one more token of each of so many requests takes.
  virtual double token_seconds(const DraftPlan& plan, int n_context, int n_requests) const = 0;

  // What was learnt beside chances, as numbers that another run can begin with. restore() does nothing
  // with numbers that are not this drafter's.
  virtual std::vector<float> learnt() const { return {}; }
  virtual void restore(std::span<const float> /*learnt*/) {}

  // Drafts for several requests at once.
  void draft(std::span<const ModelDraftJob> jobs);

 protected:
  // The executor drafts, and outlives this; `costs` are of its passes, which it watches. `stopping`
  // may be nullptr.
  ModelDrafter(DraftSource source, const ChainOptions& options, Executor& executor, PassCosts& costs,
               std::unique_ptr<StoppingRule> stopping);

  StoppingRule* stopping() const { return stopping_.get(); }
  const PassCosts& costs() const { return costs_; }

 private:
  DraftSource source_;
  PassCosts& costs_;
  std::unique_ptr<StoppingRule> stopping_;
  std::unique_ptr<ChainGrower> grower_;
};

// What a way to speculate drafts with.
struct DrafterSet {
  std::vector<std::unique_ptr<Drafter>> texts = {};
  std::vector<std::unique_ptr<ModelDrafter>> models = {};

  bool wants_prompt_state() const {
    return std::ranges::any_of(models, &ModelDrafter::wants_prompt_state);
  }
};

}  // namespace forerun
