#include "draft/model/model_drafter.h"

#include <algorithm>

#include "core/check.h"
#include "core/stopwatch.h"
#include "cost/draft_value.h"
#include "draft/model/token_draw.h"
#include "model/foreign_text.h"
#include "model/scratch_guard.h"

namespace forerun {
namespace {

// Tokens of one level, by how sure the chain's own is: SWIFT's numbers.
int level_width(double probability) {
  if (probability >= kSureDraw) return 1;
  if (probability > 0.8) return 3;
  return probability > 0.5 ? 5 : int{kLikeliestTokens};
}

}  // namespace

// Grows the chains of several requests, a token of each at a time.
class ChainGrower {
 public:
  // All outlive this. `stopping` may be nullptr.
  ChainGrower(DraftSource source, const ChainOptions& options, Executor& executor, PassCosts& costs,
              const StoppingRule* stopping)
      : source_(source), options_(options), executor_(executor), costs_(costs), stopping_(stopping) {}

  void draft(std::span<const ModelDraftJob> jobs) {
    chains_.clear();
    std::vector<ScratchGuard> guards;
    for (const ModelDraftJob& job : jobs) {
      const auto start = job.drafter->start();
      if (!start) continue;
      if (start->read == nullptr) guards.emplace_back(executor_.cells(), start->sequence);
      begin(job, *start);
    }
    for (;;) {
      const auto open = std::ranges::find(chains_, false, &Chain::is_complete);
      if (open == chains_.end()) return;
      forward(open->job->plan.layers);
    }
  }

 private:
  // A request's draft while it grows.
  struct Chain {
    const ModelDraftJob* job;
    ChainStart start;
    SamplerState state;
    std::vector<TokenId> next;   // to be read next; the last of them is `end`
    std::optional<NodeId> cell;  // of the one read last
    int32_t end = kRoot;         // the tree's node
    int32_t hint_end;            // the hint's; kNone: it has no such node
    // Rows of the pass: the first of them read what was next, the others what was hinted at.
    size_t first_row = 0, n_rows = 0, n_next = 0, n_taken = 0;
    bool is_complete = false;

    RequestModelDrafter& drafter() const { return *job->drafter; }
    DraftTree& tree() const { return *job->tree; }
  };

  void begin(const ModelDraftJob& job, const ChainStart& start) {
    CHECK(!start.unread.empty() && start.unread.size() <= static_cast<size_t>(executor_.max_rows()));
    RequestModelDrafter& drafter = *job.drafter;
    drafter.chain_.clear();
    drafter.probabilities_.clear();
    // A rule of its own takes the place of the plan's numbers.
    const int planned = stopping_ != nullptr  ? stopping_->longest().value_or(options_.tokens)
                        : job.rule != nullptr ? options_.tokens
                                              : std::min(options_.tokens, job.plan.max_tokens);
    drafter.max_tokens_ = std::min({planned, job.limits.max_depth, job.limits.max_nodes});
    chains_.push_back({.job = &job,
                       .start = start,
                       .state = drafter.request().state(),
                       .next = {start.unread.begin(), start.unread.end()},
                       .cell = std::nullopt,
                       .hint_end = job.hint != nullptr ? kRoot : DraftTree::kNone});
  }

  // All chains with these layers that there is room for grow by a token or more.
  void forward(const LayerSet& layers) {
    const auto max_rows = static_cast<size_t>(executor_.max_rows());
    pass_.rows.clear();
    pass_.layers = layers;
    for (Chain& chain : chains_) {
      chain.n_rows = 0;
      if (chain.is_complete || chain.job->plan.layers != layers) continue;
      if (pass_.rows.size() + chain.next.size() <= max_rows) add_rows(chain);
    }
    if (pass_.rows.empty()) return;
    n_sharing_ = 0;
    int n_context = 0;
    for (const Chain& chain : chains_) {
      if (chain.n_rows == 0) continue;
      ++n_sharing_;
      n_context += chain.drafter().n_context();
    }
    const Stopwatch watch;
    take_rows(executor_.forward(pass_));
    if (executor_.was_usual()) watch_cost(n_context, watch.seconds());
  }

  // Drawing from what the pass says included: with many requests that takes longer than the pass of a
  // small model.
  void watch_cost(int n_context, double seconds) {
    const auto n_rows = static_cast<int>(pass_.rows.size());
    if (pass_.layers->is_full()) {
      costs_.observe(
          {.n_rows = n_rows, .n_requests = n_sharing_, .n_context = n_context, .seconds = seconds});
    } else if (n_rows == 1) {
      costs_.observe_layers(*pass_.layers, n_context, seconds);
    }
  }

  // What is to be read, and what may follow that.
  void add_rows(Chain& chain) {
    chain.first_row = pass_.rows.size();
    chain.n_next = chain.next.size();
    chain.n_taken = 0;
    for (size_t i = 0; i < chain.n_next; ++i) {
      if (add_row(chain, chain.next[i], /*wants_logits=*/i + 1 == chain.n_next)) continue;
      pass_.rows.resize(chain.first_row);
      chain.is_complete = true;
      return;
    }
    if (chain.hint_end != DraftTree::kNone) add_hinted_rows(chain);
    chain.n_rows = pass_.rows.size() - chain.first_row;
  }

  // Behind the chain's row before it. false: there is no room.
  bool add_row(const Chain& chain, TokenId token, bool wants_logits) {
    const bool is_first = pass_.rows.size() == chain.first_row;
    const auto cell =
        executor_.cells().extend(chain.start.sequence, is_first ? chain.cell : pass_.rows.back().node);
    if (!cell) return false;
    pass_.rows.push_back({.sequence = chain.start.sequence,
                          .node = *cell,
                          .token = known_tokens(executor_.model(), token),
                          .logits = wants_logits,
                          .best_do = wants_logits && best_logits_do(chain)});
    return true;
  }

  // Along the hint's likeliest path, as far as that is worth its rows.
  void add_hinted_rows(Chain& chain) {
    const ModelDraftJob& job = *chain.job;
    const DraftTree& hint = *job.hint;
    const auto chance = [&](int32_t node) { return job.hint_chances[static_cast<size_t>(node)]; };
    const double reached = chain.hint_end == kRoot ? 1 : chance(chain.hint_end);
    const int n_left = chain.drafter().max_tokens_ - chain.tree().depth(chain.end) - 1;
    path_.clear();
    path_chances_.clear();
    for (int32_t at = chain.hint_end; static_cast<int>(path_.size()) < n_left && reached > 0;) {
      at = hint.likeliest_child(at, job.hint_chances);
      if (at == DraftTree::kNone) break;
      path_.push_back(at);
      path_chances_.push_back(std::min(1.0, chance(at) / reached));
    }
    // With layers left out, further rows cost about the same share as with all of them.
    path_.resize(static_cast<size_t>(
        best_rows(costs_, path_chances_, chain.drafter().n_context(), job.n_requests)));
    if (pass_.rows.size() + path_.size() > static_cast<size_t>(executor_.max_rows())) return;
    for (const int32_t node : path_) {
      if (!add_row(chain, hint[node].token, /*wants_logits=*/true)) return;
    }
  }

  // Chains grow by what the rows of the pass say, a token of each at a time.
  void take_rows(const PassResult& result) {
    for (;;) {
      drawing_.clear();
      for (Chain& chain : chains_) {
        const auto row = next_row(chain);
        if (!row) continue;
        drawing_.push_back(&chain);
        if (draws_.size() < drawing_.size()) draws_.emplace_back();
        const RequestModelDrafter& drafter = chain.drafter();
        TokenDraw& draw = draws_[drawing_.size() - 1];
        draw.sampler = &drafter.sampler();
        draw.keeps_distribution = drafter.own_sampler_ != nullptr;
        draw.state = &chain.state;
        draw.position = Position{drafter.n_context() + chain.tree().depth(chain.end)};
        draw.logits = result.view(*row);
      }
      if (drawing_.empty()) return;
      drawer_.draw(std::span(draws_).first(drawing_.size()), executor_.model().helping_device());
      for (size_t i = 0; i < drawing_.size(); ++i) grow(*drawing_[i], draws_[i]);
    }
  }

  // The next row of the pass from which the chain grows. nullopt: there is none.
  std::optional<size_t> next_row(Chain& chain) {
    while (chain.n_taken < chain.n_rows && !chain.is_complete) {
      const size_t i = chain.n_taken++;
      const Row& row = pass_.rows[chain.first_row + i];
      const bool is_hint = i >= chain.n_next;
      // What was hinted at is on the path as long as it is what was drawn.
      if (is_hint && row.token != chain.next.back()) {
        chain.n_taken = chain.n_rows;
        break;
      }
      chain.cell = row.node;
      if (chain.start.read != nullptr)
        chain.start.read->push_back({is_hint ? row.token : chain.next[i], row.node});
      if (i + 1 >= chain.n_next) return chain.first_row + i;
    }
    return std::nullopt;
  }

  // Whether the best logits of a row mostly say what a chain asks of it.
  bool best_logits_do(const Chain& chain) const {
    const Sampler& sampler = chain.drafter().sampler();
    return sampler.draws_from_best(chain.state) &&
           executor_.model().config().n_vocab <= sampler.n_vocab();
  }

  void grow(Chain& chain, TokenDraw& draw) {
    if (!draw.token) {
      chain.is_complete = true;
      return;
    }
    RequestModelDrafter& drafter = chain.drafter();
    DraftTree& tree = chain.tree();
    const TokenId token = *draw.token;
    if (draw.keeps_distribution) tree.set_distribution(chain.end, std::move(draw.distribution));
    const int32_t node = add(chain, token, draw.probability);
    drafter.chain_.push_back(token);
    drafter.probabilities_.push_back(draw.probability);
    if (options_.siblings && !draw.keeps_distribution && chain.job->rule == nullptr)
      add_siblings(chain, draw);

    const size_t n_answer = static_cast<size_t>(to_int(draw.position)) - drafter.request().n_prompt();
    const auto known = drafter.request().known_answer();
    DraftedToken drafted{.logits = draw.logits,
                         .sums = draw.sums,
                         .likeliest = draw.likeliest,
                         .token = token,
                         .probability = draw.probability,
                         .probabilities = drafter.probabilities_,
                         .depth = tree.depth(node),
                         .n_answer = static_cast<int>(n_answer),
                         .n_sharing = n_sharing_};
    if (n_answer < known.size()) drafted.known = known[n_answer];
    chain.is_complete = ends(chain, drafted);
    if (chain.is_complete) return;
    chain.end = node;
    chain.next.assign(1, token);
    chain.state.accept(token);
    if (chain.hint_end != DraftTree::kNone) {
      chain.hint_end = chain.job->hint->find_child(chain.hint_end, token).value_or(DraftTree::kNone);
    }
  }

  bool ends(const Chain& chain, const DraftedToken& token) const {
    const ModelDraftJob& job = *chain.job;
    bool goes_on = job.rule != nullptr
                       ? job.rule->goes_on(token)
                       : token.probability >= job.plan.threshold.value_or(options_.threshold);
    if (StoppingRule* own = chain.drafter().stopping_) goes_on = own->goes_on(token);
    return !goes_on || chain.drafter().request().ends_answer(token.token) ||
           token.depth >= chain.drafter().max_tokens_ || chain.tree().size() >= job.limits.max_nodes;
  }

  void add_siblings(Chain& chain, const TokenDraw& draw) {
    int n_left =
        std::min(level_width(draw.probability) - 1, chain.job->limits.max_nodes - chain.tree().size());
    for (const ScoredToken& likely : draw.likeliest) {
      if (likely.token == draw.token) continue;
      if (n_left-- <= 0) return;
      add(chain, likely.token, draw.sums.probability(likely.logit));
    }
  }

  // A token that may follow the chain.
  int32_t add(Chain& chain, TokenId token, double probability) const {
    const float score = chain.tree().score(chain.end) * static_cast<float>(probability);
    return chain.tree().add({.token = token, .parent = chain.end, .score = score, .source = source_});
  }

  DraftSource source_;
  ChainOptions options_;
  Executor& executor_;
  PassCosts& costs_;
  const StoppingRule* stopping_;

  std::vector<Chain> chains_;
  int n_sharing_ = 0;  // of them, the pass
  // Reused from draft to draft.
  Pass pass_;
  std::vector<int32_t> path_;  // of a hint
  std::vector<double> path_chances_;
  TokenDrawer drawer_;
  std::vector<Chain*> drawing_;   // chains that get a token
  std::vector<TokenDraw> draws_;  // theirs; there may be more
};

RequestModelDrafter::RequestModelDrafter(const RequestView& request, StoppingRule* stopping)
    : request_(request), stopping_(stopping) {
  if (!request.compares_distributions()) return;
  // Draws that have nothing to do with the target's.
  SamplingOptions options = request.sampler().options();
  options.seed = request.sampler().seed() ^ 0x9e3779b97f4a7c15u;
  own_sampler_ = std::make_unique<Sampler>(options, request.sampler().n_vocab());
}

void RequestModelDrafter::append(std::span<const TokenId> tokens) {
  if (chain_.empty()) return;
  const auto n_drafted = static_cast<int>(chain_.size());
  const auto n_agreed = static_cast<int>(std::ranges::mismatch(chain_, tokens).in1 - chain_.begin());
  const ChainOutcome outcome{
      .n_tested = std::min({n_drafted, static_cast<int>(tokens.size()), n_agreed + 1}),
      .n_agreed = n_agreed,
      .n_drafted = n_drafted,
      .is_longest = n_drafted >= max_tokens_,
      .probabilities = probabilities_};
  chain_.clear();
  if (stopping_ != nullptr) stopping_->observe(outcome);
  observe(outcome);
}

ModelDrafter::ModelDrafter(DraftSource source, const ChainOptions& options, Executor& executor,
                           PassCosts& costs, std::unique_ptr<StoppingRule> stopping)
    : source_(source),
      costs_(costs),
      stopping_(std::move(stopping)),
      grower_(std::make_unique<ChainGrower>(source, options, executor, costs, stopping_.get())) {}

ModelDrafter::~ModelDrafter() = default;

void ModelDrafter::draft(std::span<const ModelDraftJob> jobs) {
  grower_->draft(jobs);
}

}  // namespace forerun
