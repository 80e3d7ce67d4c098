#include "layers/del.h"

#include <algorithm>

#include "core/check.h"
#include "layers/block_states.h"

namespace forerun {
namespace {

constexpr int kMaxDraft = 17;  // as published

class DelSelector final : public IntervalSelector {
 public:
  DelSelector(const DelOptions& options, const SelectorResources& resources)
      : IntervalSelector(options.when, resources),
        window_(options.window),
        counts_(resources.executor.model().config().n_layers, options.decay) {}

 private:
  bool look(const RequestView& request, const RecentText& recent) override {
    const size_t n_text = request.text().size();
    const size_t n = std::min({recent.n_new, static_cast<size_t>(window_), n_text - 1});
    if (n == 0) return false;
    TextBlockStates states(executor_, request, n_text, n);
    std::vector<float> exits;
    for (int n_run = 1; n_run < states.n_layers(); ++n_run) {
      const auto state = states.full(2 * n_run);
      exits.insert(exits.end(), state.begin(), state.end());
    }
    const std::vector<BlockStates::Said> said = states.say(exits);
    for (size_t token = 0; token < n; ++token) {
      counts_.fade();
      for (size_t i = token; i < said.size(); i += n) {
        counts_.add(static_cast<int>(i / n) + 1, said[i].is_text, said[i].probability);
      }
    }
    return true;
  }
  std::optional<DraftPlan> plan(int /*n_context*/) override {
    const ExitCounts::Choice choice = counts_.best();
    if (choice.n_tokens == 0) return std::nullopt;
    const int n_layers = executor_.model().config().n_layers;
    // Where misses are yet to come, it never stops: any threshold that no token is below.
    return DraftPlan{.layers = LayerSet::first_blocks(n_layers, 2 * choice.n_run),
                     .max_tokens = choice.n_tokens,
                     .threshold = choice.threshold.value_or(0.0)};
  }
  double look_seconds(int n_context) const override { return 4 * costs_.pass(window_, n_context); }

  int window_;
  ExitCounts counts_;
};

}  // namespace

void DelOptions::describe(OptionVisitor& visitor) {
  when.describe(visitor);
  visitor.visit({"window", "Tokens it looks at, of the last verifications"}, window, {1, 64});
  visitor.visit({"decay", "What counts keep of their weight with every token"}, decay, {0.0, 1.0});
}

ExitCounts::ExitCounts(int n_layers, double decay)
    : decay_(decay), exits_(static_cast<size_t>(std::max(0, n_layers - 1))) {}

void ExitCounts::add(int n_run, bool is_hit, double confidence) {
  CHECK(n_run > 0 && static_cast<size_t>(n_run) <= exits_.size());
  Exit& exit = exits_[static_cast<size_t>(n_run - 1)];
  Counts& counts = is_hit ? exit.hits : exit.misses;
  counts.n += 1;
  counts.confidence += confidence;
}

void ExitCounts::fade() {
  for (Exit& exit : exits_) {
    for (Counts* counts : {&exit.hits, &exit.misses}) {
      counts->n *= decay_;
      counts->confidence *= decay_;
    }
  }
}

ExitCounts::Choice ExitCounts::best() const {
  Choice best;
  const auto n_layers = static_cast<double>(exits_.size() + 1);
  double best_rate = 1 / n_layers;
  for (size_t i = 0; i < exits_.size(); ++i) {
    const Exit& exit = exits_[i];
    const double n = exit.hits.n + exit.misses.n;
    if (n == 0) continue;
    const double chance = exit.hits.n / n;
    double expected = 1;
    for (int n_tokens = 1; n_tokens <= kMaxDraft; ++n_tokens) {
      expected = 1 + chance * expected;
      const double rate = expected / (n_layers + n_tokens * static_cast<double>(i + 1));
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = {.n_run = static_cast<int>(i + 1), .n_tokens = n_tokens, .threshold = std::nullopt};
    }
  }
  if (best.n_tokens == 0) return best;
  const Exit& exit = exits_[static_cast<size_t>(best.n_run - 1)];
  if (exit.hits.n > 0 && exit.misses.n > 0) {
    best.threshold = (exit.hits.confidence / exit.hits.n + exit.misses.confidence / exit.misses.n) / 2;
  }
  return best;
}

std::unique_ptr<LayerSelector> make_del(const DelOptions& options, const SelectorResources& resources) {
  return std::make_unique<DelSelector>(options, resources);
}

}  // namespace forerun
