#include "layers/knapspec.h"

#include <algorithm>
#include <cmath>

#include "cost/draft_value.h"
#include "layers/agreement.h"
#include "layers/idle_blocks.h"

namespace forerun {
namespace {

// How much better than plain decoding a draft must look: estimates are rough.
constexpr double kMargin = 1.05;

// Tokens that read each other's keys and values as the draft has them: as many as drafts have.
constexpr size_t kDraftTokens = 16;
// Of layers that were chosen before.
constexpr double kUsualAgreement = 0.8;

std::vector<AgreementWindow> as_long_as_drafts(const AgreementWindow& all) {
  std::vector<AgreementWindow> windows;
  for (size_t n_left = all.n; n_left > 0;) {
    const size_t n = std::min(n_left, kDraftTokens);
    AgreementWindow window{.request = all.request, .end = all.end - (all.n - n_left), .n = n};
    n_left -= n;
    if (!all.expected.empty()) window.expected = all.expected.subspan(n_left, n);
    windows.push_back(window);
  }
  return windows;
}

// A set that drafts, and how often what it drafts is the model's own: counts that fade, so that the
// latest drafts, about fifty of them, count most.
struct Chosen {
  LayerSet layers;
  double n_agreed;
  double n_tested;

  // A few tokens tell little: as if one more had been seen to agree and one not to.
  Chosen(const LayerSet& chosen, double agreement, size_t n_tokens)
      : layers(chosen),
        n_agreed(agreement * static_cast<double>(n_tokens) + 1),
        n_tested(static_cast<double>(n_tokens) + 2) {}

  double chance() const { return n_agreed / n_tested; }
  void observe(const ChainOutcome& outcome) {
    constexpr double kKept = 0.98;
    n_agreed = kKept * n_agreed + outcome.n_agreed;
    n_tested = kKept * n_tested + outcome.n_tested;
  }
};

class KnapSpecSelector final : public IntervalSelector {
 public:
  KnapSpecSelector(const KnapSpecOptions& options, const SelectorResources& resources)
      : IntervalSelector(options.when, resources),
        options_(options),
        idle_blocks_(resources.executor, resources.costs) {}

  void observe(const ChainOutcome& outcome) override {
    if (chosen_) chosen_->observe(outcome);
  }
  std::optional<LayerSet> learnt() const override {
    if (chosen_) return chosen_->layers;
    if (!idle_blocks_.is_done()) return std::nullopt;
    return LayerSet::full(executor_.model().config().n_layers);
  }
  // How often they were right is learnt again: the text is another one.
  void restore(const LayerSet& learnt) override {
    if (learnt.n_layers() != executor_.model().config().n_layers) return;
    idle_blocks_.skip();
    if (!learnt.is_full()) chosen_ = Chosen(learnt, kUsualAgreement, kDraftTokens);
  }

 private:
  bool look(const RequestView& request, const RecentText& recent) override {
    const size_t n_text = request.text().size();
    const int n_context = request.n_context();
    const size_t n = std::min({recent.n_tokens, static_cast<size_t>(options_.window), n_text - 1});
    if (n == 0) return false;
    TextBlockStates states(executor_, request, n_text, n);
    const auto value = [&](const Chosen& chosen) { return best(chosen, n_context).tokens_per_second; };
    const auto choices = knapspec_choices(states, options_, costs_, n_context);
    const auto published = std::ranges::max_element(choices, {}, [&](const KnapsackChoice& choice) {
      return value(Chosen(choice.layers, choice.agreement, n));
    });
    std::vector<KnapsackChoice> compared;
    const auto compare = [&](const KnapsackChoice& choice) {
      const bool is_new =
          std::ranges::find(compared, choice.layers, &KnapsackChoice::layers) == compared.end();
      if (is_new) compared.push_back(choice);
    };
    if (options_.check > 0) compared = best_trades(choices);
    compare(*published);
    // A few tokens may lead the programme astray: what was chosen before may be better.
    if (options_.check > 0 && chosen_) {
      compare({.layers = chosen_->layers, .agreement = chosen_->chance()});
    }
    AgreementWindow all{.request = &request,
                        .end = n_text,
                        .n = std::min(static_cast<size_t>(options_.check), n_text - 1)};
    std::vector<TokenId> words;  // the model's own
    std::vector<AgreementWindow> windows;
    if (all.n > n) {
      words = model_tokens(executor_, all);
      all.expected = words;
      windows = as_long_as_drafts(all);
    }
    chosen_.reset();
    for (const KnapsackChoice& choice : compared) {
      const auto agreement =
          windows.empty() ? std::nullopt : measured_agreement(executor_, choice.layers, windows);
      const Chosen candidate(choice.layers, agreement.value_or(choice.agreement), agreement ? all.n : n);
      if (!chosen_ || value(candidate) > value(*chosen_)) chosen_ = candidate;
    }
    return true;
  }
  std::optional<DraftPlan> plan(int n_context) override {
    if (!chosen_) return std::nullopt;
    DraftPlan plan{.layers = chosen_->layers, .agreement = chosen_->chance()};
    // As published, the drafter's threshold says how long drafts are; all blocks are no draft.
    if (options_.adapt) plan.max_tokens = best(*chosen_, n_context, {.margin = kMargin}).n_tokens;
    const bool pays = options_.adapt ? plan.max_tokens > 0 : !plan.layers.is_full();
    return pays ? std::optional(plan) : std::nullopt;
  }
  // The programme, then what is compared.
  double look_seconds(int n_context) const override {
    const int n_rows = std::min(options_.branches > 0 ? options_.branches : 64, 64) * options_.window;
    const double check = options_.check > 0 ? costs_.pass(options_.check, n_context) : 0;
    return 2 * (costs_.pass(n_rows, n_context) + check);
  }
  bool promises_much(const RequestView& request, double seconds, TimeShare& time) override {
    return idle_blocks_.promises_much(request, seconds, time);
  }

  DraftValue best(const Chosen& chosen, int n_context, const DraftLengths& lengths = {}) const {
    const double seconds = costs_.pass_with(chosen.layers, n_context);
    return best_draft(costs_, chosen.chance(), seconds, n_context, lengths);
  }

  KnapSpecOptions options_;
  IdleBlockCheck idle_blocks_;
  std::optional<Chosen> chosen_;  // nullopt: nothing yet
};

}  // namespace

void KnapSpecOptions::describe(OptionVisitor& visitor) {
  when.describe(visitor);
  visitor.visit({"cap", "Share of the weight of all blocks that may be left out"}, cap, {0.0, 1.0});
  visitor.visit({"cosine", "Likeness below which a branch is dropped"}, min_cosine, {-1.0, 1.0});
  visitor.visit({"branches", "Branches of the dynamic programme (0: all)"}, branches, {0, 4096});
  visitor.visit({"window", "Tokens it looks at, of the last verifications"}, window, {1, 64});
  visitor.visit({"check", "Tokens to compare the best sets on (0: as published)"}, check, {0, 256});
  visitor.visit({"adapt", "Let lengths of drafts follow what becomes of them (false: as published)"},
                adapt);
}

KnapsackOptions block_weights(const PassCosts& costs, int n_layers, int n_context) {
  const double attention = costs.attention_block(n_layers, n_context);
  const double mlp = costs.blocks().mlp;
  const double ratio = mlp > 0 && attention > 0 ? attention / mlp : 1;
  return {.attention_weight = std::max(1, static_cast<int>(std::lround(ratio))),
          .mlp_weight = std::max(1, static_cast<int>(std::lround(1 / ratio)))};
}

std::vector<KnapsackChoice> knapspec_choices(BlockStates& states, const KnapSpecOptions& options,
                                             const PassCosts& costs, int n_context) {
  const int n_layers = states.n_layers();
  KnapsackOptions programme = block_weights(costs, n_layers, n_context);
  const int all = n_layers * (programme.attention_weight + programme.mlp_weight);
  programme.max_weight = static_cast<int>(all * options.cap);
  programme.min_cosine = options.min_cosine;
  if (options.branches > 0) programme.max_branches = options.branches;
  return solve_knapsack(states, programme);
}

std::vector<KnapsackChoice> quick_choices(BlockStates& states, const PassCosts& costs, int n_context) {
  return best_trades(knapspec_choices(states, {.branches = kQuickBranches}, costs, n_context));
}

std::unique_ptr<LayerSelector> make_knapspec(const KnapSpecOptions& options,
                                             const SelectorResources& resources) {
  return std::make_unique<KnapSpecSelector>(options, resources);
}

}  // namespace forerun
