// Trains DISCO's classifier: cross-entropy between the chance it gives and what became of drafted
// tokens, minimised with ggml's AdamW.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "stopping/disco.h"
#include "tune/disco/examples.h"

namespace forerun {

struct DiscoTrainingOptions {
  int n_hidden = 32;
  int n_epochs = 40;
  double learning_rate = 2e-3;  // at first; it falls to 0 as a cosine does
  uint64_t seed = 1;
  // Gets the share that is done and the loss on what is held out. May be empty.
  std::function<void(double share, double loss)> progress = {};
};

// The network of the epoch that is best on `held_out`. The same for the same examples and options
// on the same machine. Throws Error when there are too few examples to learn from.
DiscoNetwork train_disco(std::span<const DiscoExample> examples, std::span<const DiscoExample> held_out,
                         const DiscoTrainingOptions& options = {});

// Nats per example.
double cross_entropy(const DiscoNetwork& network, std::span<const DiscoExample> examples);

}  // namespace forerun
