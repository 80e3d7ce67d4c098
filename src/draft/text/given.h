// Drafts from what a request comes with, beside its prompt.
#pragma once

#include <memory>
#include <vector>

#include "draft/drafter.h"
#include "request/request_view.h"

namespace forerun {

// What the grammar of an answer forces: the rest of a key of JSON, once it has begun. The request, which
// has a grammar, outlives it.
std::unique_ptr<RequestDrafter> make_forced_drafter(const RequestView& request);

// What the caller expects: a file that is to be returned with a few changes. The draft goes on where the
// answer stands in that text. Where the answer departs from it, the place is looked for where the two
// meet again.
std::unique_ptr<RequestDrafter> make_prediction_drafter(std::vector<TokenId> prediction);

}  // namespace forerun
