// What passes cost, as far as is known without waiting, and kept for the next run.
#pragma once

#include "cost/pass_costs.h"
#include "model/executor.h"

namespace forerun {

// What was measured or learnt in earlier runs; else what other models took on this machine, for this
// one's size; else a guess.
PassCosts known_costs(Executor& executor);

// Keeps what was learnt, if enough passes were seen and the folder can be written.
void keep_costs(Executor& executor, const PassCosts& costs);

}  // namespace forerun
