// A forward pass as a textbook writes it: loops over floats, no graph, no cache.
//
// What the engine's hidden states and logits are compared with. Slow; for tiny models
// whose weights are F32 (to_f32 in gguf_builder.h makes such a copy of any).
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "model/model.h"

namespace forerun::test {

struct PlainResult {
  // [boundary][row * n_embd + i]: the residual stream before each of the 2L blocks, and
  // behind the last.
  std::vector<std::vector<float>> states;
  std::vector<float> logits;  // rows x n_vocab
};

// Reads `tokens` as a text of their own. Uses the model's hyperparameters and its file,
// nothing else of it.
PlainResult plain_forward(const Model& model, std::span<const TokenId> tokens);

}  // namespace forerun::test
