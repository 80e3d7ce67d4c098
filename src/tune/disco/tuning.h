// Finds the threshold and the length that a classifier drafts fastest with, by measured time.
//
// Successive halving (Jamieson and Talwalkar, 2016): all candidates answer a few texts, the slower
// half is dropped, the others answer as many more as the same time allows, until one is left.
// Every text is answered by all candidates in turn, so that whatever else the machine does hits
// all alike, and they are compared on the same texts.
#pragma once

#include <functional>
#include <vector>

#include "stopping/disco.h"

namespace forerun {

struct TuningOptions {
  std::vector<double> thresholds{0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
  std::vector<int> lengths{4, 8, 16};
  int n_answers = 84;  // of all candidates together, before each halving
  // Gets the share that is done. May be empty.
  std::function<void(double share)> progress = {};
  // Asked before every answer; true ends the search with the best so far. May be empty.
  std::function<bool()> is_cancelled = {};
};

// `seconds` is asked what answering a text takes under a rule; texts are numbered from 0 on.
DiscoRule tune_disco(size_t n_texts, const std::function<double(const DiscoRule&, size_t text)>& seconds,
                     const TuningOptions& options = {});

}  // namespace forerun
