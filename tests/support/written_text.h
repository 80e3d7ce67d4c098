// A text that the model itself wrote, as a request that runs.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/executor.h"
#include "request/request_view.h"

namespace forerun::test {

// Its last token is not yet read.
class WrittenText final : public RequestView {
 public:
  WrittenText(Executor& executor, float temperature, int n_tokens,
              std::vector<TokenId> prompt = {TokenId{1}, TokenId{7}, TokenId{13}})
      : sampler_(options(temperature), executor.model().config().n_vocab),
        sequence_(executor.cells().create()),
        text_(std::move(prompt)),
        n_prompt_(text_.size()) {
    for (int i = 0; i < n_tokens; ++i) {
      const auto n_read = static_cast<size_t>(executor.cells().n_committed(sequence_));
      const auto logits = executor.read(sequence_, std::span(text_).subspan(n_read)).value();
      text_.push_back(
          sampler_.sample(logits, state_, Position{static_cast<int32_t>(text_.size())}, scratch_));
    }
  }
  std::span<const TokenId> text() const override { return text_; }
  size_t n_prompt() const override { return n_prompt_; }
  int n_left() const override { return n_left_; }
  void set_n_left(int n_left) { n_left_ = n_left; }
  bool ends_answer(TokenId token) const override { return token == end_; }
  void set_end(TokenId token) { end_ = token; }
  SequenceId sequence() const override { return sequence_; }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return state_; }

 private:
  static SamplingOptions options(float temperature) {
    SamplingOptions options;
    options.temperature = temperature;
    options.top_k = 0;
    options.top_p = 1;
    options.min_p = 0;
    options.seed = 4;
    return options;
  }

  Sampler sampler_;
  SamplerState state_;
  SamplerScratch scratch_;
  SequenceId sequence_;
  std::vector<TokenId> text_;
  size_t n_prompt_;
  int n_left_ = std::numeric_limits<int>::max();
  std::optional<TokenId> end_;  // what ends the answer
};

}  // namespace forerun::test
