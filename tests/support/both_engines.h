// The same tokens read by forerun and by libllama.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "support/engine.h"
#include "support/libllama.h"

namespace forerun::test {

struct BothLogits {
  std::vector<float> ours;
  std::vector<float> theirs;
};

// Reads the first `n_prompt` tokens in passes of at most 512, then token by token; ours
// with `layers` only.
inline BothLogits read_with_both(Executor& executor, LibLlama& reference,
                                 std::span<const TokenId> tokens, size_t n_prompt,
                                 const std::optional<LayerSet>& layers = std::nullopt) {
  BothLogits logits;
  const SequenceId sequence = executor.cells().create();
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = at < n_prompt ? std::min<size_t>(n_prompt - at, 512) : 1;
    const auto part = tokens.subspan(at, n);
    const auto ours = read_and_commit(executor, sequence, part, layers);
    const auto theirs = reference.read(part, n);
    logits.ours.insert(logits.ours.end(), ours.begin(), ours.end());
    logits.theirs.insert(logits.theirs.end(), theirs.begin(), theirs.end());
    at += n;
  }
  executor.cells().remove(sequence);
  return logits;
}

}  // namespace forerun::test
