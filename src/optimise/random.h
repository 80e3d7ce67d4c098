// Random numbers of a search: a pure function of a seed and a stream.
//
// A search draws each of its proposals from a stream of its own, so that a saved search
// has no generator to save: its seed and the number of its proposals say it all. The same
// numbers on every machine.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/hash.h"

namespace forerun {

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : generator_(mixed(seed, stream)) {}

  // In [0, 1).
  double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

  // In 0 .. n - 1.
  int below(int n) {
    CHECK(n > 0);
    return static_cast<int>(uniform() * n);
  }

  // `n_chosen` different numbers below n, in random order.
  std::vector<int> choose(int n, int n_chosen) {
    CHECK(n_chosen >= 0 && n_chosen <= n);
    std::vector<int> numbers(static_cast<size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    for (int i = 0; i < n_chosen; ++i) {
      std::swap(numbers[static_cast<size_t>(i)], numbers[static_cast<size_t>(i + below(n - i))]);
    }
    numbers.resize(static_cast<size_t>(n_chosen));
    return numbers;
  }

 private:
  static uint64_t mixed(uint64_t seed, uint64_t stream) {
    StableHash hash;
    hash.add(seed);
    hash.add(stream);
    return hash.value();
  }

  std::mt19937_64 generator_;
};

}  // namespace forerun
