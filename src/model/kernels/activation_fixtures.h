// Blocks of one row among those of its bundle, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "model/kernels/kernels.h"

namespace forerun {

// Makes `block` that of row `place` in the blocks of a bundle at `bundle`.
inline void put_block(const KernelSet& kernels, const ActivationBlock& block, int place,
                      std::byte* bundle) {
  if (kernels.rows_together == 1) {
    *reinterpret_cast<ActivationBlock*>(bundle) = block;
    return;
  }
  ActivationPair& pair = *reinterpret_cast<ActivationPair*>(bundle);
  for (int i = 0; i < 4; ++i) std::copy_n(block.q + 8 * i, 8, pair.q[i][place]);
  for (int i = 2 * place; i < 2 * place + 2; ++i) {
    pair.scale[i] = block.scale;
    pair.scaled_sum[i] = block.scaled_sum;
    pair.sum[i] = block.sum;
  }
}

// The reverse of it. A pair has no first_half_sum; it is computed.
inline ActivationBlock get_block(const KernelSet& kernels, const std::byte* bundle, int place) {
  if (kernels.rows_together == 1) return *reinterpret_cast<const ActivationBlock*>(bundle);
  const ActivationPair& pair = *reinterpret_cast<const ActivationPair*>(bundle);
  const int first = 2 * place, second = first + 1;
  const auto is_same = [](float a, float b) { return a == b || (a != a && b != b); };
  EXPECT_TRUE(is_same(pair.scale[first], pair.scale[second]));
  EXPECT_TRUE(is_same(pair.scaled_sum[first], pair.scaled_sum[second]));
  EXPECT_EQ(pair.sum[first], pair.sum[second]);
  ActivationBlock block{.q = {},
                        .scale = pair.scale[first],
                        .scaled_sum = pair.scaled_sum[first],
                        .sum = pair.sum[first],
                        .first_half_sum = 0};
  for (int i = 0; i < 4; ++i) std::copy_n(pair.q[i][place], 8, block.q + 8 * i);
  for (int i = 0; i < kActivationBlock / 2; ++i) block.first_half_sum += block.q[i];
  return block;
}

}  // namespace forerun
