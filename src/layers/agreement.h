// How well the model with blocks left out says what it says with all of them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/executor.h"
#include "request/request_view.h"

namespace forerun {

// Tokens of a text: the `n` before place `end`, all committed but perhaps the last, and more
// before them. The request outlives it.
struct AgreementWindow {
  const RequestView* request;
  size_t end;
  size_t n;
  std::span<const TokenId> expected = {};  // to compare with; empty: the text

  size_t begin() const { return end - n; }
};

// Adds rows of the tokens before each of its places, of which the first sees the committed text before
// it and the others see those before them too. false: no room in the cache.
bool add_rows(KvCells& cells, const AgreementWindow& window, std::vector<Row>& rows);

// SWIFT's matchness: the share of some tokens of the text that the model with these layers,
// reading the full model's keys and values before them and its own among them, would have
// put there. Costs a pass of as many rows with these layers.
//
// An answer's tokens are what the full model puts there. A prompt's are not, and with them all
// sets look bad: compare with the model's own words then.
//
// Of all windows together, of which each has no more tokens than a pass has rows. Leaves the sequences
// as they are. nullopt: no room in the cache. Throws Error when the device fails.
std::optional<double> measured_agreement(Executor& executor, const LayerSet& layers,
                                         std::span<const AgreementWindow> windows);
// What the full model puts at a window's places, if some of them are the prompt's, which costs
// a pass; nothing if none are, or if there is no room in the cache.
std::vector<TokenId> model_tokens(Executor& executor, const AgreementWindow& window);

}  // namespace forerun
