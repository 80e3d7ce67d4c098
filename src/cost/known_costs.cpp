#include "cost/known_costs.h"

#include "core/error.h"
#include "cost/cost_file.h"
#include "cost/guessed_costs.h"

namespace forerun {
namespace {

constexpr int64_t kEnoughPasses = 100;

}  // namespace

PassCosts known_costs(Executor& executor) {
  const CostKey key = CostKey::of(executor);
  if (auto kept = load_costs(calibration_folder(), key)) return PassCosts(std::move(*kept));
  Calibration guess = guess_costs(executor);
  if (auto similar = load_similar_curve(calibration_folder(), key)) {
    // Blocks have their part of a pass, whatever that takes.
    const double factor = similar->rows(1) / guess.curve.rows(1);
    guess.blocks = {.attention = guess.blocks.attention * factor,
                    .mlp = guess.blocks.mlp * factor,
                    .rest = guess.blocks.rest * factor};
    guess.curve = std::move(*similar);
  }
  return PassCosts(std::move(guess), PassCosts::Known::kGuessed);
}

void keep_costs(Executor& executor, const PassCosts& costs) {
  if (costs.n_seen() < kEnoughPasses) return;
  try {
    save_costs(calibration_folder(), CostKey::of(executor), costs.learnt());
  } catch (const Error&) {
    // Where the folder cannot be written, the next run learns it again.
  }
}

}  // namespace forerun
