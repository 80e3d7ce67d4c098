// Drafts what the grammar of an answer forces: the rest of a key of JSON, once it has begun.
#pragma once

#include <memory>

#include "draft/drafter.h"
#include "request/request_view.h"

namespace forerun {

// The request, which has a grammar, outlives it.
std::unique_ptr<RequestDrafter> make_forced_drafter(const RequestView& request);

}  // namespace forerun
