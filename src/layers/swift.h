// Layers searched on the fly, beside the text they are for: SWIFT.
//
// Xia et al., "SWIFT: On-the-Fly Self-Speculative Decoding for LLM Inference Acceleration",
// ICLR 2025. Candidates are tried on the last 32 tokens of the text at hand; the best set so
// far drafts, and stays with the engine from request to request.
//
// As published (`search` = "published") a candidate is a random set of a fixed share of the
// blocks, every 25th from a Gaussian process, and agreement alone is its score, on tokens of the
// answer, not of the prompt; until there are enough of them, blocks spread evenly are left out. Where
// fewer than seven in ten drafted tokens are taken, the share becomes 0.4 (`adapt`), as the paper's
// footnote has it and its code has not. By default ("neighbour") it is a small change of the best set,
// of any size, and its score is the expected tokens per second: agreement against what drafting with it
// costs (cost/draft_value.h). Then plain decoding is among the choices, and is what comes of a model
// that can do without none of its blocks. It begins with the best of what KnapSpec's programme gives
// with a few branches (knapspec.h): small changes of the whole model would lead there too, but take
// hundreds of candidates.
//
// Where the published code scores all candidates on the first tokens of an answer, which soon
// are stale, its paper says the latest, and so does this. By default a request's candidates
// are all tried on the same tokens for a while, though: another text moves scores by more than
// a changed block does.
//
// The search takes at most a given share of the time of the requests it runs beside. What it
// learnt may be kept in a file, which a later engine with the same model goes on from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/option_visitor.h"
#include "layers/idle_blocks.h"
#include "layers/layer_selector.h"
#include "optimise/subset_search.h"

namespace forerun {

struct SwiftOptions {
  std::string search = "neighbour";  // or "published"
  double skip = 0.45;                // share of the blocks left out, as published
  bool adapt = true;                 // to a smaller share where few drafts are taken, as published
  int window = 32;                   // tokens that candidates are tried on
  double share = 0.03;               // of the time, for the search; 1: no limit
  int max_candidates = 1000;
  int max_without_progress = 300;
  double good_agreement = 0.95;  // ends a search as published
  std::string state = {};        // file that keeps what was learnt; empty: nothing is kept

  bool is_published() const { return search == "published"; }
  void describe(OptionVisitor& visitor);
};

class SwiftSelector final : public LayerSelector {
 public:
  // Goes on from the state's file, if there is one; throws Error where that is damaged, of another model
  // or of another search. Warns of what goes wrong when the state is kept.
  SwiftSelector(const SwiftOptions& options, const SelectorResources& resources);
  ~SwiftSelector() override { finish(); }

  NextPlan begin(const RequestView& request) override;
  void observe(const ChainOutcome& outcome) override;
  // Writes the state's file, if there is to be one and it would be another. Never throws Error.
  void finish() override;

  // The best set so far; nullopt: not to draft. As published, the even one before any was tried.
  std::optional<LayerSet> best() const;
  double skip() const { return options_.skip; }  // the share of the blocks left out, as published
  const SubsetSearch& search() const { return search_; }

 private:
  // Tokens of a request that candidates are tried on.
  struct Tokens {
    const RequestView* request;
    size_t end = 0;
    // The model's own, where these are the prompt's; nullopt: it was not asked for them.
    std::optional<std::vector<TokenId>> model_tokens = std::nullopt;
  };
  std::optional<DraftPlan> next_plan(Tokens& tokens);
  bool has_window(const Tokens& tokens) const;
  // Tries a candidate, if there are enough tokens and there is time for it.
  void try_candidate(Tokens& tokens);
  // Of a candidate. As published, its agreement; ours: how many times as fast as plain decoding it is.
  // nullopt: no room in the cache.
  std::optional<double> score(Tokens& tokens, const LayerSet& layers);
  void begin_search(Tokens& tokens);
  bool has_time(const RequestView& request);
  const Model& model() const { return resources_.executor.model(); }

  SwiftOptions options_;
  SelectorResources resources_;
  TimeShare time_;
  IdleBlockCheck idle_blocks_;
  SubsetSearch search_;
  int n_kept_ = 0;                // scores that the state's file knows
  bool has_begun_;                // what to begin with is known
  ChainOutcome drafted_;          // all drafts so far, as published
  double candidate_seconds_ = 0;  // what the last one took
};

}  // namespace forerun
