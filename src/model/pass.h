// What one forward pass computes, and what comes out of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "model/best_logits.h"
#include "model/layer_set.h"
#include "sampling/logits_view.h"

namespace forerun {

// One token for the model to read. Its scratch node in the KV cache says where it
// stands and which earlier tokens it sees (kv_cells.h).
struct Row {
  SequenceId sequence;
  NodeId node;
  TokenId token{};
  bool logits = false;  // wanted: the logits of the next token
  bool hidden = false;  // wanted: the residual stream at Pass::hidden_at
  // Mostly the best logits do, so that a GPU need not hand over the others before they are asked for.
  bool best_do = false;
};

// Rows are ordered so that a row's parent, if it is in the same pass, comes before
// it. Rows of many sequences may share a pass.
struct Pass {
  std::vector<Row> rows;
  std::optional<LayerSet> layers;  // nullopt: the full model

  // Block boundaries at which the residual stream of `hidden` rows is returned:
  // boundary b lies before block b, boundary 2L after the last block and before the
  // final norm. In ascending order.
  std::vector<int> hidden_at;

  // If not empty: what enters at boundary `entered_at` instead of the tokens' embeddings at the first,
  // rows x n_embd floats. With a LayerSet of one block this runs that block alone.
  std::span<const float> states;
  int entered_at = 0;
};

// The results of a pass. They stay valid until the next pass of the same Executor.
class PassResult {
 public:
  // The row must have asked for them. Any thread may.
  LogitsView view(size_t row) const;
  // All of them: n_vocab floats.
  std::span<const float> logits(size_t row) const { return view(row).all(); }
  // n_embd floats: the state of `row` at boundary hidden_at[at].
  std::span<const float> hidden(size_t at, size_t row) const;

 private:
  friend class Executor;  // makes it; these fill it:
  friend class OwnPasses;
  friend class LlamaPasses;
  std::span<const float> logits_;               // n_logits x n_vocab, or none:
  std::span<const BestOfRow> best_;             // n_logits,
  WholeLogits* whole_ = nullptr;                // and where the others are
  std::vector<std::span<const float>> hidden_;  // per boundary: n_hidden x n_embd
  std::vector<int32_t> logit_index_;            // per row: its place in logits_, or -1
  std::vector<int32_t> hidden_index_;
  size_t n_vocab_ = 0;
  size_t n_embd_ = 0;
};

}  // namespace forerun
