// What DISCO's classifier sees of a drafted token (Mamou et al., 2024): the ten largest
// probabilities of the draft's distribution, the entropy of all of it, and how far the answer is.
#pragma once

#include <array>
#include <vector>

#include "sampling/vocab_ops.h"
#include "stopping/stopping_rule.h"

namespace forerun {

constexpr size_t kDiscoProbabilities = 10;
constexpr size_t kDiscoFeatures = kDiscoProbabilities + 2;
// Probabilities from the largest on (0 where the vocabulary has fewer), entropy in nats, log(1 + n)
// of the n tokens of the answer before this one.
using DiscoFeatures = std::array<float, kDiscoFeatures>;

// Not thread-safe: keeps its memory.
class DiscoView {
 public:
  DiscoFeatures features(const DraftedToken& token);

 private:
  SelectionScratch scratch_;
  std::vector<ScoredToken> likeliest_;
};

}  // namespace forerun
