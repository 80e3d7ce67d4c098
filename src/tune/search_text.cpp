#include "tune/search_text.h"

#include <algorithm>

#include "core/error.h"

namespace forerun {

void read_all(Executor& executor, SequenceId sequence, std::span<const TokenId> text) {
  const auto max_rows = static_cast<size_t>(executor.max_rows());
  for (size_t begin = 0; begin < text.size(); begin += max_rows) {
    const size_t n = std::min(max_rows, text.size() - begin);
    if (!executor.read(sequence, text.subspan(begin, n))) {
      fail(ErrorCode::kInvalidArgument,
           "the texts to search on do not fit into the context: use fewer or shorter ones");
    }
  }
}

}  // namespace forerun
