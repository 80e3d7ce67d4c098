// How well the model with blocks left out says what it says with all of them.
#pragma once

#include "layers/request_view.h"
#include "model/executor.h"

namespace forerun {

// Tokens of a text: the `n` before place `end`, all committed but perhaps the last, and more
// before them. The request outlives it.
struct AgreementWindow {
  const RequestView* request;
  size_t end;
  size_t n;
};

// SWIFT's matchness: the share of some tokens of the text that the model with these layers,
// reading the full model's keys and values before them and its own among them, would have
// put there. Costs a pass of as many rows with these layers.
//
// Leaves the sequences as they are. Throws Error when the device fails.
class AgreementProbe {
 public:
  explicit AgreementProbe(Executor& executor) : executor_(executor) {}

  // Of all windows together, of which each has no more tokens than a pass has rows. nullopt: no
  // room in the cache.
  std::optional<double> measure(const LayerSet& layers, std::span<const AgreementWindow> windows);
  std::optional<double> measure(const RequestView& request, const LayerSet& layers, size_t end,
                                size_t n) {
    const AgreementWindow window{.request = &request, .end = end, .n = n};
    return measure(layers, {&window, 1});
  }

 private:
  // Adds the tokens before those that are compared. false: no room in the cache.
  bool add_rows(const AgreementWindow& window);
  // How many tokens of these windows, whose rows make the pass, are the same.
  size_t n_same(std::span<const AgreementWindow> windows);

  Executor& executor_;
  Pass pass_;
  SamplerScratch scratch_;
};

}  // namespace forerun
