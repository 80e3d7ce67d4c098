#include "draft/chains.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "model/foreign_text.h"

namespace forerun {
namespace {

// Tokens of one level, by how sure the chain's own is: SWIFT's numbers.
int level_width(double probability) {
  if (probability > 0.95) return 1;
  if (probability > 0.8) return 3;
  return probability > 0.5 ? 5 : 10;
}

// The chance that the text comes to `node`, as the draft has it.
float score_of(const DraftTree& tree, int32_t node) {
  return node == kRoot ? 1.0f : tree[node].score;
}

// Draws that have nothing to do with the target's.
Sampler independent(const Sampler& sampler) {
  SamplingOptions options = sampler.options();
  options.seed = sampler.seed() ^ 0x9e3779b97f4a7c15u;
  return Sampler(options, sampler.n_vocab());
}

}  // namespace

void ChainOptions::describe(OptionVisitor& visitor) {
  visitor.visit(
      {.name = "tokens", .help = "Tokens drafted at most (lookahead fixed and disco: as they say)"},
      tokens, {1, 127});
  visitor.visit({.name = "threshold", .help = "Stop behind a token that is less probable"}, threshold,
                {0.0, 1.0});
  visitor.visit(
      {.name = "siblings", .help = "Draft the next likeliest tokens too (accept match and target)"},
      siblings);
}

ChainDrafter::ChainDrafter(DraftMethod& method, const DraftControl& control)
    : method_(method),
      gate_(control.gate.get()),
      lookahead_(control.lookahead != nullptr ? control.lookahead->begin() : nullptr) {}

void ChainDrafter::attach(const RequestView& request) {
  request_ = &request;
  if (!request.compares_distributions()) return;
  own_sampler_ = std::make_unique<Sampler>(independent(request.sampler()));
}

const RequestView& ChainDrafter::request() const {
  CHECK(request_ != nullptr);
  return *request_;
}

double ChainDrafter::expected_rate(int n_requests) const {
  if (gate_ == nullptr) return 0;
  DraftSituation now = situation();
  now.n_requests = n_requests;
  return gate_->expected_rate(now);
}

std::optional<DraftPlan> ChainDrafter::gated(const DraftPlan& plan, const DraftJob& job) const {
  std::optional<DraftPlan> allowed = plan;
  if (gate_ != nullptr) {
    DraftSituation now = situation();
    now.rival = job.rival_rate;
    now.n_requests = job.n_requests;
    allowed = gate_->check(plan, now);
  }
  return allowed && allowed->max_tokens > 0 ? allowed : std::nullopt;
}

void ChainDrafter::draft(const DraftLimits& limits, DraftTree& tree) {
  const DraftJob job{.drafter = this, .limits = limits, .tree = &tree};
  method_.draft({&job, 1});
}

void ChainDrafter::append(std::span<const TokenId> tokens) {
  if (chain_.empty()) return;
  const ChainOutcome became = outcome(tokens);
  chain_.clear();
  if (lookahead_ != nullptr) lookahead_->observe(became);
  if (gate_ != nullptr) gate_->observe(became);
  observe_chain(became);
}

ChainOutcome ChainDrafter::outcome(std::span<const TokenId> tokens) const {
  const size_t n = std::min(chain_.size(), tokens.size());
  const auto differs =
      std::mismatch(chain_.begin(), chain_.begin() + static_cast<ptrdiff_t>(n), tokens.begin());
  const auto n_agreed = static_cast<size_t>(differs.first - chain_.begin());
  return {.n_tested = static_cast<int>(std::min(n, n_agreed + 1)),
          .n_agreed = static_cast<int>(n_agreed),
          .n_drafted = static_cast<int>(chain_.size()),
          .is_longest = chain_.size() >= static_cast<size_t>(max_tokens_)};
}

ChainGrower::ChainGrower(const ChainOptions& options, Executor& executor, const DraftControl& control)
    : options_(options), executor_(executor), control_(control) {}

void ChainGrower::begin(const Start& start) {
  CHECK(!start.unread.empty() && start.unread.size() <= static_cast<size_t>(executor_.max_rows()));
  ChainDrafter& drafter = *start.drafter;
  const RequestView& request = drafter.request();
  drafter.chain_.clear();
  // A rule of its own takes the place of the plan's numbers, but for trials, which are to be short.
  const bool has_rule = drafter.lookahead_ != nullptr;
  int planned = has_rule ? control_.lookahead->longest().value_or(options_.tokens) : options_.tokens;
  if (!has_rule || start.plan.is_trial) planned = std::min(planned, start.plan.max_tokens);
  const DraftLimits& limits = start.job->limits;
  drafter.max_tokens_ = std::min({planned, limits.max_depth, limits.max_nodes});
  chains_.push_back({.start = start,
                     .max_tokens = drafter.max_tokens_,
                     .state = request.state(),
                     .next = {start.unread.begin(), start.unread.end()},
                     .cell = std::nullopt,
                     .hint_end = start.job->hint != nullptr ? kRoot : DraftTree::kNone});
  if (!has_rule) return;
  DraftStart draft{.n_context = drafter.n_context(), .n_requests = start.job->n_requests};
  if (control_.cost) {
    draft.token_seconds =
        control_.cost->token_seconds(start.plan.layers, draft.n_context, draft.n_requests);
  }
  drafter.lookahead_->begin(draft);
}

void ChainGrower::run() {
  // Nothing of them is left when a pass fails.
  const struct Clearing {
    std::vector<Chain>& chains;
    ~Clearing() { chains.clear(); }
  } clearing{chains_};
  for (;;) {
    const auto open =
        std::ranges::find_if(chains_, [](const Chain& chain) { return !chain.is_complete; });
    if (open == chains_.end()) return;
    forward(open->start.plan.layers);
  }
}

// All chains with these layers that there is room for grow by a token or more.
void ChainGrower::forward(const LayerSet& layers) {
  const auto max_rows = static_cast<size_t>(executor_.max_rows());
  pass_.rows.clear();
  pass_.layers = layers;
  for (Chain& chain : chains_) {
    chain.n_rows = 0;
    if (chain.is_complete || chain.start.plan.layers != layers) continue;
    if (pass_.rows.size() + chain.next.size() <= max_rows) add_rows(chain);
  }
  if (pass_.rows.empty()) return;
  const Stopwatch watch;
  const PassResult& result = executor_.forward(pass_);
  for (Chain& chain : chains_) {
    if (chain.n_rows == 0) continue;
    const int n_before = chain.tree().depth(chain.end);
    take_rows(chain, result);
    // What is shared by several requests says nothing of what one takes.
    if (control_.gate == nullptr || chain.n_rows < pass_.rows.size()) continue;
    const int n_grown = chain.tree().depth(chain.end) - n_before + (chain.is_complete ? 1 : 0);
    control_.gate->observe_cost(chain.start.plan, chain.n_context(), n_grown, watch.seconds());
  }
}

// What is to be read, and what may follow that.
void ChainGrower::add_rows(Chain& chain) {
  const SequenceId sequence = chain.start.sequence;
  chain.first_row = pass_.rows.size();
  for (const TokenId token : chain.next) {
    const auto cell = executor_.cells().extend(
        sequence, pass_.rows.size() == chain.first_row ? chain.cell : pass_.rows.back().node);
    if (!cell) {
      pass_.rows.resize(chain.first_row);
      chain.is_complete = true;
      return;
    }
    pass_.rows.push_back(
        {.sequence = sequence, .node = *cell, .token = readable(executor_.model(), token)});
  }
  pass_.rows.back().logits = true;
  if (control_.gate != nullptr && chain.hint_end != DraftTree::kNone) add_hinted_rows(chain);
  chain.n_rows = pass_.rows.size() - chain.first_row;
}

// Along the hint's likeliest path, as far as that is worth its rows.
void ChainGrower::add_hinted_rows(Chain& chain) {
  const DraftJob& job = *chain.start.job;
  const DraftTree& hint = *job.hint;
  const auto chance = [&](int32_t node) { return job.hint_chances[static_cast<size_t>(node)]; };
  const double reached = chain.hint_end == kRoot ? 1 : chance(chain.hint_end);
  const int n_left = chain.max_tokens - chain.tree().depth(chain.end) - 1;
  path_.clear();
  path_chances_.clear();
  for (int32_t at = chain.hint_end; static_cast<int>(path_.size()) < n_left && reached > 0;) {
    int32_t best = hint.first_child(at);
    if (best == DraftTree::kNone) break;
    for (int32_t child = best; child != DraftTree::kNone; child = hint.next_sibling(child)) {
      if (chance(child) > chance(best)) best = child;
    }
    path_.push_back(best);
    path_chances_.push_back(std::min(1.0, chance(best) / reached));
    at = best;
  }
  path_.resize(
      static_cast<size_t>(control_.gate->n_ahead(path_chances_, chain.n_context(), job.n_requests)));
  if (pass_.rows.size() + path_.size() > static_cast<size_t>(executor_.max_rows())) return;
  for (const int32_t node : path_) {
    const auto cell = executor_.cells().extend(chain.start.sequence, pass_.rows.back().node);
    if (!cell) return;
    pass_.rows.push_back({.sequence = chain.start.sequence,
                          .node = *cell,
                          .token = readable(executor_.model(), hint[node].token),
                          .logits = true});
  }
}

void ChainGrower::take_rows(Chain& chain, const PassResult& result) {
  const size_t n_next = chain.next.size();
  for (size_t i = 0; i < chain.n_rows && !chain.is_complete; ++i) {
    const Row& row = pass_.rows[chain.first_row + i];
    // Rows behind what was to be read are on the path as long as they are what was drawn.
    if (i >= n_next && row.token != chain.next.back()) return;
    chain.cell = row.node;
    const TokenId token = i < n_next ? chain.next[i] : row.token;
    if (chain.start.read != nullptr) chain.start.read->push_back({token, row.node});
    if (i + 1 >= n_next) grow(chain, result.logits(chain.first_row + i));
  }
}

void ChainGrower::grow(Chain& chain, std::span<const float> all_logits) {
  ChainDrafter& drafter = *chain.start.drafter;
  DraftTree& tree = chain.tree();
  const int depth = tree.depth(chain.end) + 1;
  const Position position{chain.n_context() + depth - 1};
  const Sampler* own = drafter.own_sampler_.get();
  const Sampler& sampler = own != nullptr ? *own : drafter.request().sampler();
  const std::span<const float> logits =
      fit_logits(all_logits, static_cast<size_t>(sampler.n_vocab()), fitted_);
  TokenId token;
  try {
    const Distribution& distribution = sampler.distribution(logits, chain.state, scratch_);
    token = sampler.draw(distribution, position);
    if (own != nullptr) tree.set_distribution(chain.end, distribution);
  } catch (const Error&) {
    // There is no token that this model would put there: the request does without.
    chain.is_complete = true;
    return;
  }

  const SoftmaxSums sums = softmax_sums(logits);
  const double probability = sums.probability(logits[static_cast<size_t>(to_int(token))]);
  const float score = score_of(tree, chain.end);
  const DraftNode spine{.token = token,
                        .parent = chain.end,
                        .score = score * static_cast<float>(probability),
                        .source = DraftSource::kModel};
  const int32_t node = tree.add(spine);
  drafter.chain_.push_back(token);
  if (options_.siblings && own == nullptr) add_siblings(chain, logits, spine, sums);

  const auto n_prompt = static_cast<int>(drafter.request().n_prompt());
  const int n_answer = chain.n_context() - n_prompt + depth - 1;
  const auto known = drafter.request().known_answer();
  DraftedToken drafted{.logits = logits,
                       .sums = sums,
                       .token = token,
                       .probability = probability,
                       .depth = depth,
                       .n_answer = n_answer};
  if (static_cast<size_t>(n_answer) < known.size()) drafted.known = known[static_cast<size_t>(n_answer)];
  chain.is_complete = ends(chain, drafted);
  if (chain.is_complete) return;
  chain.end = node;
  chain.next.assign(1, token);
  chain.state.accept(token);
  if (chain.hint_end != DraftTree::kNone) {
    chain.hint_end = chain.start.job->hint->find_child(chain.hint_end, token).value_or(DraftTree::kNone);
  }
}

bool ChainGrower::ends(const Chain& chain, const DraftedToken& token) const {
  Lookahead* lookahead = chain.start.drafter->lookahead_.get();
  const double threshold = chain.start.plan.threshold.value_or(options_.threshold);
  const bool goes_on = lookahead != nullptr ? lookahead->goes_on(token) : token.probability >= threshold;
  return !goes_on || token.depth >= chain.max_tokens ||
         chain.tree().size() >= chain.start.job->limits.max_nodes;
}

void ChainGrower::add_siblings(Chain& chain, std::span<const float> logits, const DraftNode& spine,
                               const SoftmaxSums& sums) {
  DraftTree& tree = chain.tree();
  const float score = score_of(tree, chain.end);
  const int n = std::min(level_width(score > 0 ? spine.score / score : 0),
                         chain.start.job->limits.max_nodes - tree.size() + 1);
  if (n < 2) return;
  select_top(logits, static_cast<size_t>(n), selection_, likeliest_);
  int n_added = 1;
  for (const ScoredToken& likely : likeliest_) {
    if (likely.token == spine.token) continue;
    if (n_added++ == n) return;
    tree.add({.token = likely.token,
              .parent = chain.end,
              .score = score * static_cast<float>(sums.probability(likely.logit)),
              .source = DraftSource::kModel});
  }
}

}  // namespace forerun
