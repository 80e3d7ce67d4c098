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
// How often drafts with the others are taken to be right, as if so many tokens had been seen.
constexpr double kIdleAgreement = 0.85;
constexpr int kIdleSeen = 100;
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
  for (int at = 2; at < 2 * (n_layers - 1); ++at) {
    const double cosine = mean_cosine(states.full(at), states.full(at + 1), states.n_embd());
    const double angle = std::acos(std::clamp(cosine, -1.0, 1.0));
    blocks.push_back({.id = BlockId{at},
                      .turn = angle * angle,
                      .cost = at % 2 == 0 ? attention : costs.blocks().mlp});
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

bool IdleBlockCheck::promises_much(const RequestView& request, double choosing, TimeShare& time) {
  const size_t n_text = request.text().size();
  const int n_context = request.n_context();
  if (!speedup_) {
    if (n_text <= kTokens + 1) return false;
    // Its graph is built for this one time.
    if (!time.allows(2 * costs_.pass(kTokens, n_context)) && !time.has_seen(kStepsBefore)) return false;
    const Stopwatch watch;
    double speedup = 0;
    in_free_cells([&] {
      const TextBlockStates states(executor_, request, n_text, kTokens);
      speedup =
          draft_speedup(costs_, without_idle_blocks(states, costs_, n_context),
                        {.agreement = kIdleAgreement, .n_seen = kIdleSeen, .n_context = n_context});
    });
    time.use(watch.seconds());
    speedup_ = speedup;
  }
  if (is_done()) return false;
  const double saved = (1 - 1 / *speedup_) * costs_.pass(1, n_context);
  if (kAnswers * request.n_expected(kUsualAnswer) * saved < choosing) return false;
  skip();
  return true;
}

}  // namespace forerun
