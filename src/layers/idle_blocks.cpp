#include "layers/idle_blocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cost/draft_value.h"

namespace forerun {
namespace {

constexpr size_t kTokens = 4;
// It looks once, so that it need not wait long for its share of the time; the first few tokens of a
// new model are not to wait for it.
constexpr int kStepsBefore = 32;
// What all blocks that are left out may turn the states by, together.
constexpr double kLargestAngle = 10 * std::numbers::pi / 180;
// What drafts with the others are to bring at least, and how often they are taken to be right.
constexpr double kLeastSpeedup = 1.2;
constexpr SeenAgreement kUsual{.agreement = 0.85, .n_seen = 100};
// Tokens that an answer usually has, and in how many answers a choice is to be paid back: what is chosen
// for one is there for the next.
constexpr double kUsualAnswer = 128;
constexpr double kAnswers = 4;

}  // namespace

LayerSet without_idle_blocks(const BlockStates& states, const PassCosts& costs, int n_context) {
  const int n_layers = states.n_layers();
  const double attention = costs.attention_block(n_layers, n_context);
  struct Block {
    BlockId id;
    double turn;  // square of the angle
    double cost;
  };
  std::vector<Block> blocks;
  for (int layer = 1; layer + 1 < n_layers; ++layer) {
    for (const BlockId id : {attention_block(layer), mlp_block(layer)}) {
      const int at = to_int(id);
      const double cosine = mean_cosine(states.full(at), states.full(at + 1), states.n_embd());
      const double angle = std::acos(std::clamp(cosine, -1.0, 1.0));
      blocks.push_back({.id = id,
                        .turn = angle * angle,
                        .cost = id == attention_block(layer) ? attention : costs.blocks().mlp});
    }
  }
  std::ranges::sort(blocks, {}, [](const Block& block) { return block.turn / block.cost; });
  LayerSet layers = LayerSet::full(n_layers);
  double turn = 0;
  for (const Block& block : blocks) {
    turn += block.turn;
    if (turn > kLargestAngle * kLargestAngle) break;
    layers.set(block.id, false);
  }
  return layers;
}

bool IdleBlockCheck::is_done() const {
  return speedup_ && *speedup_ < kLeastSpeedup;
}

bool IdleBlockCheck::promises_much(const RequestView& request, double choosing, TimeShare& time) {
  const size_t n_text = request.text().size();
  const auto n_context = static_cast<int>(n_text);
  if (!speedup_) {
    if (n_text <= kTokens + 1) return false;
    // Its graph is built for this one time.
    if (!time.allows(2 * costs_.pass(kTokens, n_context)) && !time.has_seen(kStepsBefore)) return false;
    speedup_ = look(request, time);
  }
  if (is_done()) return false;
  const double saved = (1 - 1 / *speedup_) * costs_.pass(1, n_context);
  if (kAnswers * request.n_expected(kUsualAnswer) * saved < choosing) return false;
  skip();
  return true;
}

double IdleBlockCheck::look(const RequestView& request, TimeShare& time) {
  const size_t n_text = request.text().size();
  const Stopwatch watch;
  SeenAgreement seen = kUsual;
  seen.n_context = static_cast<int>(n_text);
  double speedup = 0;
  in_free_cells([&] {
    const TextBlockStates states(executor_, request, n_text, kTokens);
    speedup = draft_speedup(costs_, without_idle_blocks(states, costs_, seen.n_context), seen);
  });
  time.use(watch.seconds());
  return speedup;
}

}  // namespace forerun
