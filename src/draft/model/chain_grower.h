// Chains of tokens that a model drafts, a token of each request at a time.
//
// A chain ends behind the token at which a stopping rule says so: the drafter's own
// (stopping/stopping_rule.h), that of whoever asked for the draft, or, where there is neither, behind
// the first token whose probability (of the model's own distribution, before temperature) is below
// a threshold. With `siblings` each of its tokens has the next likeliest beside it, the more the
// less sure it is: SWIFT's tree.
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

#include <optional>
#include <span>
#include <vector>

#include "core/option_visitor.h"
#include "cost/pass_costs.h"
#include "draft/drafter.h"
#include "layers/layer_selector.h"
#include "model/executor.h"
#include "stopping/stopping_rule.h"

namespace forerun {

class RequestModelDrafter;

struct ChainOptions {
  int tokens = 25;         // of a chain at most
  double threshold = 0.8;  // a chain ends behind a token that is less probable
  bool siblings = false;

  void describe(OptionVisitor& visitor);
};

// A draft that is wanted.
struct ModelDraftJob {
  RequestModelDrafter* drafter;
  DraftPlan plan;
  DraftLimits limits;
  DraftTree* tree;                      // empty
  int n_requests = 1;                   // that get a token by the same pass
  RequestStoppingRule* rule = nullptr;  // of who asks; nullptr: the method's own
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

class ChainGrower {
 public:
  // All outlive this. `stopping` may be nullptr.
  ChainGrower(const ChainOptions& options, Executor& executor, PassCosts& costs,
              const StoppingRule* stopping);

  // A chain to be grown; the job outlives run().
  void begin(const ModelDraftJob& job, const ChainStart& start, double token_seconds);
  // Grows all of them until none goes on.
  void run();

  Executor& executor() { return executor_; }

 private:
  // A request's draft while it grows.
  struct Chain {
    const ModelDraftJob* job;
    ChainStart start;
    int max_tokens;
    SamplerState state;
    std::vector<TokenId> next;         // to be read next; the last of them is `end`
    std::optional<NodeId> cell;        // of the one read last
    int32_t end = kRoot;               // the tree's node
    int32_t hint_end;                  // the hint's; kNone: it has no such node
    size_t first_row = 0, n_rows = 0;  // of the pass
    bool is_complete = false;

    RequestModelDrafter& drafter() const { return *job->drafter; }
    DraftTree& tree() const { return *job->tree; }
  };

  void forward(const LayerSet& layers);
  void add_rows(Chain& chain);
  void add_hinted_rows(Chain& chain);
  void watch_cost(const Chain& chain, double seconds);
  // Grows by what the rows of the pass say, as far as they are on its path.
  void take_rows(Chain& chain, const PassResult& result);
  void grow(Chain& chain, std::span<const float> logits);
  void add_siblings(Chain& chain, std::span<const float> logits, const DraftNode& spine,
                    const SoftmaxSums& sums);
  bool ends(const Chain& chain, const DraftedToken& token) const;

  ChainOptions options_;
  Executor& executor_;
  PassCosts& costs_;
  const StoppingRule* stopping_;

  std::vector<Chain> chains_;
  // Reused from draft to draft.
  Pass pass_;
  std::vector<int32_t> path_;  // of a hint
  std::vector<double> path_chances_;
  SamplerScratch scratch_;
  SelectionScratch selection_;
  std::vector<ScoredToken> likeliest_;
  std::vector<float> fitted_;  // logits of a smaller vocabulary
};

}  // namespace forerun
