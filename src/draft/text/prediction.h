// Drafts from a text that the caller expects: a file that is to be returned with a few changes.
//
// The draft goes on where the answer stands in that text. Where the answer departs from it, the place is
// looked for where the two meet again.
#pragma once

#include <memory>
#include <vector>

#include "draft/drafter.h"

namespace forerun {

std::unique_ptr<RequestDrafter> make_prediction_drafter(std::vector<TokenId> prediction);

}  // namespace forerun
