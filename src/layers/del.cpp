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
    plan_ = counts_.best();
    return true;
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

void ExitCounts::add(int n_run, bool is_hit, double confidence) {
  CHECK(n_run > 0 && static_cast<size_t>(n_run) <= exits_.size());
  Counts& counts = exits_[static_cast<size_t>(n_run - 1)][is_hit ? 1 : 0];
  counts.n += 1;
  counts.confidence += confidence;
}

void ExitCounts::fade() {
  for (auto& exit : exits_) {
    for (Counts& counts : exit) {
      counts.n *= decay_;
      counts.confidence *= decay_;
    }
  }
}

std::optional<DraftPlan> ExitCounts::best() const {
  std::optional<DraftPlan> best;
  const auto n_layers = static_cast<int>(exits_.size() + 1);
  double best_rate = 1.0 / n_layers;
  for (int n_run = 1; n_run < n_layers; ++n_run) {
    const auto& [misses, hits] = exits_[static_cast<size_t>(n_run - 1)];
    if (hits.n + misses.n == 0) continue;
    const double chance = hits.n / (hits.n + misses.n);
    // Where hits or misses are yet to come, it never stops: no token is below this.
    double threshold = 0;
    if (hits.n > 0 && misses.n > 0) {
      threshold = (hits.confidence / hits.n + misses.confidence / misses.n) / 2;
    }
    double expected = 1;
    for (int n_tokens = 1; n_tokens <= kMaxDraft; ++n_tokens) {
      expected = 1 + chance * expected;
      const double rate = expected / (n_layers + n_tokens * n_run);
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = DraftPlan{.layers = LayerSet::first_blocks(n_layers, 2 * n_run),
                       .max_tokens = n_tokens,
                       .threshold = threshold};
    }
  }
  return best;
}

std::unique_ptr<LayerSelector> make_del(const DelOptions& options, const SelectorResources& resources) {
  return std::make_unique<DelSelector>(options, resources);
}

}  // namespace forerun
