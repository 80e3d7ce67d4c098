// Chains of tokens that a model drafts, a token of each request at a time.
//
// A chain ends behind the token at which a stopping rule (lookahead/lookahead.h) says so, or, where
// there is none, behind the first token whose probability (of the model's own distribution, before
// temperature) is below a threshold. With `siblings` each of its tokens has the next likeliest
// beside it, the more the less sure it is: SWIFT's tree.
//
// Tokens are drawn with the target's own noise (sampling/sampler.h), so that a draft whose
// distribution is like the target's mostly draws the target's token. Where the verifier
// compares distributions, draws have noise of their own and the chain no siblings.
//
// Where a gate knows what rows cost, tokens that texts propose (DraftJob::hint) are read beside
// the chain's last one. They are a guess at the draft as drafts are a guess at the text: as many
// as it would draw itself, the chain grows by in one pass, and it is the same chain.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/option_visitor.h"
#include "draft/drafter.h"
#include "layers/draft_gate.h"
#include "layers/layer_selector.h"
#include "lookahead/lookahead.h"
#include "model/executor.h"

namespace forerun {

struct ChainOptions {
  int tokens = 25;         // of a chain at most
  double threshold = 0.8;  // a chain ends behind a token that is less probable
  bool siblings = false;

  void describe(OptionVisitor& visitor);
};

// How drafts of a model are ended, and whether they are made.
struct DraftControl {
  std::unique_ptr<LookaheadPolicy> lookahead = nullptr;  // nullptr: the method's own rule
  std::optional<DraftCost> cost = std::nullopt;          // known where the others need it
  std::unique_ptr<DraftGate> gate = nullptr;             // nullptr: drafts are always made
};

// A request's drafter, as far as chains go: subclasses decide what drafts.
class ChainDrafter : public Drafter {
 public:
  void attach(const RequestView& request) override;
  void draft(const DraftLimits& limits, DraftTree& tree) final;
  // It sees the request's text; what is left to do is to learn from it.
  void append(std::span<const TokenId> tokens) override;

  double expected_rate(int n_requests) const override;
  // The plan as the gate has it, if there is one; nullopt: nothing is to be drafted.
  std::optional<DraftPlan> gated(const DraftPlan& plan, const DraftJob& job) const;

  const RequestView& request() const;
  int n_context() const { return static_cast<int>(request().text().size()); }

 protected:
  // Both outlive it.
  ChainDrafter(DraftMethod& method, const DraftControl& control);
  // What a draft would be made for, but for who else is there.
  virtual DraftSituation situation() const { return {.n_context = n_context()}; }
  // What became of the latest chain.
  virtual void observe_chain(const ChainOutcome& /*outcome*/) {}

 private:
  friend class ChainGrower;

  ChainOutcome outcome(std::span<const TokenId> tokens) const;

  DraftMethod& method_;
  DraftGate* gate_;
  const RequestView* request_ = nullptr;
  std::unique_ptr<Lookahead> lookahead_;  // nullptr: a threshold
  std::unique_ptr<Sampler> own_sampler_;  // nullptr: the target's
  std::vector<TokenId> chain_;            // the latest draft, without siblings
  int max_tokens_ = 0;                    // that it could have had
};

class ChainGrower {
 public:
  // The executor drafts. It and the control outlive this.
  ChainGrower(const ChainOptions& options, Executor& executor, const DraftControl& control);

  // A token of a chain's path whose keys and values are in a scratch cell.
  struct Read {
    TokenId token;
    NodeId cell;
  };
  struct Start {
    ChainDrafter* drafter;
    const DraftJob* job;  // until run() is over
    DraftPlan plan;
    SequenceId sequence;                // of the executor's cells
    std::span<const TokenId> unread;    // the end of the text that is not committed there; not empty
    std::vector<Read>* read = nullptr;  // gets what was read on the chain's path
  };
  // A chain to be grown.
  void begin(const Start& start);
  // Grows all of them, until none goes on. Their scratch cells stay.
  void run();

 private:
  // A request's draft while it grows.
  struct Chain {
    Start start;
    int max_tokens;
    SamplerState state;
    std::vector<TokenId> next;         // to be read next; the last of them is `end`
    std::optional<NodeId> cell;        // of the one read last
    int32_t end = kRoot;               // the tree's node
    int32_t hint_end;                  // the hint's; kNone: it has no such node
    size_t first_row = 0, n_rows = 0;  // of the pass
    bool is_complete = false;

    DraftTree& tree() const { return *start.job->tree; }
    int n_context() const { return start.drafter->n_context(); }
  };

  void forward(const LayerSet& layers);
  void add_rows(Chain& chain);
  void add_hinted_rows(Chain& chain);
  // Grows by what the rows of the pass say, as far as they are on its path.
  void take_rows(Chain& chain, const PassResult& result);
  void grow(Chain& chain, std::span<const float> logits);
  void add_siblings(Chain& chain, std::span<const float> logits, const DraftNode& spine,
                    const SoftmaxSums& sums);
  bool ends(const Chain& chain, const DraftedToken& token) const;

  ChainOptions options_;
  Executor& executor_;
  const DraftControl& control_;

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
