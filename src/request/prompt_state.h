// What a prompt is about, as the model has it: a summary of the states that come out of its
// last block while it reads the prompt.
//
// Each row's state is divided by its root mean square, which is what the model's final norm
// does but for its weights. Those are the same for all rows, so whoever wants the norm's own
// output multiplies the summary by them.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "model/executor.h"

namespace forerun {

class PromptState {
 public:
  // The residual stream of the next row, behind the last block. All rows have one size.
  void add(std::span<const float> row);

  // How many rows it is of: those that were read, which of a prompt whose beginning was in
  // the cache already are fewer than its tokens.
  int n_rows() const { return n_rows_; }
  // Empty while there are no rows.
  std::span<const float> mean() const { return mean_; }
  std::span<const float> last() const { return last_; }

 private:
  int n_rows_ = 0;
  std::vector<float> mean_;
  std::vector<float> last_;
};

// Reads a prompt with the full model for its state alone; the cache is as before afterwards.
// nullopt: no room in it. Throws Error when the device fails.
std::optional<PromptState> read_prompt_state(Executor& executor, std::span<const TokenId> prompt);

}  // namespace forerun
