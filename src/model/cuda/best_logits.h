// Finds the best logits of rows where they are, so that the CPU gets these and not whole vocabularies.
//
// A vocabulary is cut into units. What is known of each, its largest logit and the softmax's sums, is
// enough for the sums over all, and for a bound: as many units as tokens are wanted have their largest
// logit above it, so that nothing below it, and no other unit, needs a second look. (The CPU selects in
// the same way: sampling/vocab_ops.cpp.) What a row gets depends on its own logits alone.
#pragma once

#include <cuda_runtime.h>

#include "model/best_logits.h"
#include "model/cuda/rows.h"

namespace forerun::cuda {

// The softmax of some logits: the largest, and the sums of exp(x - max) and of (max - x) * exp(x - max).
// 0 where no logit is above -infinity.
struct LogitSums {
  float max, total, weighted;
};

// One unit to a thread of a block that selects.
constexpr int kMostUnits = 1024;

struct Units {
  int size;  // logits of each but the last
  int n;
};
Units units_of(int n_vocab);

// Of `shape.n` logits of each row: [row][unit].
void sum_units(const float* logits, RowsShape shape, LogitSums* sums, cudaStream_t stream);
// From these: one for each row.
void select_best(const float* logits, const LogitSums* sums, RowsShape shape, BestOfRow* best,
                 cudaStream_t stream);

}  // namespace forerun::cuda
