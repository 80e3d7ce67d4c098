#include "draft/self.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/stopwatch.h"
#include "model/scratch_guard.h"

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
Sampler independent(const Sampler& sampler, int n_vocab) {
  SamplingOptions options = sampler.options();
  options.seed = sampler.seed() ^ 0x9e3779b97f4a7c15u;
  return Sampler(options, n_vocab);
}

}  // namespace

void SelfDraftOptions::describe(OptionVisitor& visitor) {
  visitor.visit({.name = "tokens", .help = "Tokens drafted at most"}, tokens, {1, 127});
  visitor.visit({.name = "threshold", .help = "Stop behind a token that is less probable"}, threshold,
                {0.0, 1.0});
  visitor.visit({.name = "siblings", .help = "Draft the next likeliest tokens too"}, siblings);
}

class SelfMethod::SelfDrafter final : public Drafter {
 public:
  explicit SelfDrafter(SelfMethod& method) : method_(method) {}

  void attach(const RequestView& request) override {
    request_ = &request;
    chooser_ = method_.selector_->begin(request);
    if (!request.compares_distributions()) return;
    const auto n_vocab = method_.executor_.model().config().n_vocab;
    own_sampler_ = std::make_unique<Sampler>(independent(request.sampler(), n_vocab));
  }
  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const DraftJob job{.drafter = this, .limits = limits, .tree = &tree};
    method_.draft({&job, 1});
  }
  // It sees the request's text; what is left to do is to learn from it.
  void append(std::span<const TokenId> tokens) override {
    if (!chain_.empty()) {
      const ChainOutcome became = outcome(tokens);
      chooser_->observe(became);
      if (method_.gate_ != nullptr) method_.gate_->observe(became);
    }
    chain_.clear();
  }
  void finish() override { chooser_->finish(); }

  const RequestView& request() const {
    CHECK(request_ != nullptr);
    return *request_;
  }
  LayerChooser& chooser() { return *chooser_; }
  // The latest draft, without siblings.
  std::vector<TokenId>& chain() { return chain_; }
  const Sampler* own_sampler() const { return own_sampler_.get(); }

 private:
  ChainOutcome outcome(std::span<const TokenId> tokens) const {
    const size_t n = std::min(chain_.size(), tokens.size());
    const auto differs =
        std::mismatch(chain_.begin(), chain_.begin() + static_cast<ptrdiff_t>(n), tokens.begin());
    const auto n_agreed = static_cast<size_t>(differs.first - chain_.begin());
    return {.n_tested = static_cast<int>(std::min(n, n_agreed + 1)),
            .n_agreed = static_cast<int>(n_agreed),
            .n_drafted = static_cast<int>(chain_.size()),
            .is_longest = chain_.size() >= static_cast<size_t>(method_.options_.tokens)};
  }

  SelfMethod& method_;
  const RequestView* request_ = nullptr;
  std::unique_ptr<LayerChooser> chooser_;
  std::unique_ptr<Sampler> own_sampler_;  // nullptr: the target's
  std::vector<TokenId> chain_;
};

// A request's draft while it grows.
struct SelfMethod::Chain {
  SelfDrafter* drafter;
  const RequestView* request;
  const DraftJob* job;
  DraftPlan plan;
  int max_tokens;
  SamplerState state;
  TokenId token;                              // to be read next
  std::optional<NodeId> cell = std::nullopt;  // of the one read last
  int32_t end = kRoot;                        // the tree's node that is `token`
  int32_t hint_end = kRoot;                   // the hint's; kNone: it has no such node
  size_t first_row = 0, n_rows = 0;           // of the pass
  bool is_complete = false;

  DraftTree& tree() const { return *job->tree; }
  int n_context() const { return static_cast<int>(request->text().size()); }
};

SelfMethod::SelfMethod(const SelfDraftOptions& options, Executor& executor,
                       std::unique_ptr<LayerSelector> selector, std::unique_ptr<DraftGate> gate)
    : options_(options), executor_(executor), selector_(std::move(selector)), gate_(std::move(gate)) {}

SelfMethod::~SelfMethod() = default;

std::unique_ptr<Drafter> SelfMethod::begin(std::span<const TokenId> /*prompt*/) {
  return std::make_unique<SelfDrafter>(*this);
}

void SelfMethod::draft(std::span<const DraftJob> jobs) {
  chains_.clear();
  std::vector<ScratchGuard> guards;
  for (const DraftJob& job : jobs) {
    auto& drafter = static_cast<SelfDrafter&>(*job.drafter);
    const auto chosen = plan(drafter, job);
    if (!chosen) continue;
    guards.emplace_back(executor_.cells(), drafter.request().sequence());
    begin_chain(drafter, *chosen, job);
  }
  for (;;) {
    const auto open = std::find_if(chains_.begin(), chains_.end(),
                                   [](const Chain& chain) { return !chain.is_complete; });
    if (open == chains_.end()) return;
    forward(open->plan.layers);
  }
}

std::optional<DraftPlan> SelfMethod::plan(SelfDrafter& drafter, const DraftJob& job) {
  drafter.chain().clear();
  auto plan = drafter.chooser().plan();
  const auto n_context = static_cast<int>(drafter.request().text().size());
  if (plan && gate_ != nullptr) plan = gate_->check(*plan, n_context, job.rival_rate);
  return plan && plan->max_tokens > 0 ? plan : std::nullopt;
}

void SelfMethod::begin_chain(SelfDrafter& drafter, const DraftPlan& plan, const DraftJob& job) {
  const RequestView& request = drafter.request();
  chains_.push_back({.drafter = &drafter,
                     .request = &request,
                     .job = &job,
                     .plan = plan,
                     .max_tokens = std::min({options_.tokens, job.limits.max_depth, plan.max_tokens}),
                     .state = request.state(),
                     .token = request.text().back(),
                     .hint_end = job.hint != nullptr ? kRoot : DraftTree::kNone});
}

// All chains with these layers grow by a token or more.
void SelfMethod::forward(const LayerSet& layers) {
  pass_.rows.clear();
  pass_.layers = layers;
  for (Chain& chain : chains_) {
    chain.n_rows = 0;
    if (!chain.is_complete && chain.plan.layers == layers) add_rows(chain);
  }
  if (pass_.rows.empty()) return;
  const Stopwatch watch;
  const PassResult& result = executor_.forward(pass_);
  for (Chain& chain : chains_) {
    const int n_before = chain.tree().depth(chain.end);
    for (size_t i = 0; i < chain.n_rows && !chain.is_complete; ++i) {
      const Row& row = pass_.rows[chain.first_row + i];
      if (row.token != chain.token) break;
      chain.cell = row.node;
      grow(chain, result.logits(chain.first_row + i));
    }
    // What is shared by several requests says nothing of what one takes.
    if (gate_ == nullptr || chain.n_rows < pass_.rows.size()) continue;
    const int n_grown = chain.tree().depth(chain.end) - n_before + (chain.is_complete ? 1 : 0);
    gate_->observe_cost(chain.plan, chain.n_context(), n_grown, watch.seconds());
  }
}

// Its last token, and what may follow that.
void SelfMethod::add_rows(Chain& chain) {
  const SequenceId sequence = chain.request->sequence();
  const auto cell = executor_.cells().extend(sequence, chain.cell);
  if (!cell) {
    chain.is_complete = true;
    return;
  }
  chain.first_row = pass_.rows.size();
  pass_.rows.push_back({.sequence = sequence, .node = *cell, .token = chain.token, .logits = true});
  if (gate_ != nullptr && chain.hint_end != DraftTree::kNone) add_hinted_rows(chain);
  chain.n_rows = pass_.rows.size() - chain.first_row;
}

// Along the hint's likeliest path, as far as that is worth its rows.
void SelfMethod::add_hinted_rows(Chain& chain) {
  const DraftTree& hint = *chain.job->hint;
  const auto chance = [&](int32_t node) { return chain.job->hint_chances[static_cast<size_t>(node)]; };
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
  path_.resize(static_cast<size_t>(gate_->n_ahead(path_chances_, chain.n_context())));
  // Every chain has room for a row of its own.
  if (pass_.rows.size() + path_.size() + chains_.size() > static_cast<size_t>(executor_.max_rows()))
    return;
  const SequenceId sequence = chain.request->sequence();
  for (const int32_t node : path_) {
    const auto cell = executor_.cells().extend(sequence, pass_.rows.back().node);
    if (!cell) return;
    pass_.rows.push_back(
        {.sequence = sequence, .node = *cell, .token = hint[node].token, .logits = true});
  }
}

void SelfMethod::grow(Chain& chain, std::span<const float> logits) {
  DraftTree& tree = chain.tree();
  const int depth = tree.depth(chain.end) + 1;
  const Position position{chain.n_context() + depth - 1};
  const Sampler* own = chain.drafter->own_sampler();
  const Sampler& sampler = own != nullptr ? *own : chain.request->sampler();
  const Distribution& distribution = sampler.distribution(logits, chain.state, scratch_);
  const TokenId token = sampler.draw(distribution, position);
  if (own != nullptr) tree.set_distribution(chain.end, distribution);

  const float max = largest(logits);
  const double total = sum_exp(logits, max, 1.0f);
  const auto index = static_cast<size_t>(to_int(token));
  const double probability = std::exp(static_cast<double>(clean(logits[index]) - max)) / total;
  const float score = score_of(tree, chain.end);
  const DraftNode spine{.token = token,
                        .parent = chain.end,
                        .score = score * static_cast<float>(probability),
                        .source = DraftSource::kModel};
  const int32_t node = tree.add(spine);
  chain.drafter->chain().push_back(token);
  if (options_.siblings && own == nullptr) add_siblings(chain, logits, spine, total);

  const bool is_full = tree.size() >= chain.job->limits.max_nodes;
  const double threshold = chain.plan.threshold.value_or(options_.threshold);
  chain.is_complete = is_full || depth >= chain.max_tokens || probability < threshold;
  if (chain.is_complete) return;
  chain.end = node;
  chain.token = token;
  chain.state.accept(token);
  if (chain.hint_end != DraftTree::kNone) {
    chain.hint_end = chain.job->hint->find_child(chain.hint_end, token).value_or(DraftTree::kNone);
  }
}

void SelfMethod::add_siblings(Chain& chain, std::span<const float> logits, const DraftNode& spine,
                              double total) {
  DraftTree& tree = chain.tree();
  const float score = score_of(tree, chain.end);
  const int n = std::min(level_width(score > 0 ? spine.score / score : 0),
                         chain.job->limits.max_nodes - tree.size() + 1);
  if (n < 2) return;
  select_top(logits, static_cast<size_t>(n), selection_, likeliest_);
  int n_added = 1;
  for (const ScoredToken& likely : likeliest_) {
    if (likely.token == spine.token) continue;
    if (n_added++ == n) return;
    const double probability =
        std::exp(static_cast<double>(likely.logit - likeliest_.front().logit)) / total;
    tree.add({.token = likely.token,
              .parent = chain.end,
              .score = score * static_cast<float>(probability),
              .source = DraftSource::kModel});
  }
}

}  // namespace forerun
