// How many more tokens an answer is likely to get.
#pragma once

#include <algorithm>

#include "request/request_view.h"

namespace forerun {

inline double n_answer(const RequestView& request) {
  return static_cast<double>(request.text().size() - request.n_prompt());
}

// As many as answers usually have, or as it has already if that is more, since the longer one is, the
// longer it is likely to go on; and no more than it may get.
inline double expected_tokens(const RequestView& request, double usual) {
  return std::min<double>(request.n_left(), std::max(usual, n_answer(request)));
}

}  // namespace forerun
