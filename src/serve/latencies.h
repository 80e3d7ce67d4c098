// How long clients wait, as Prometheus' histograms: for their turn, for the first text, between texts.
//
// Watched on the engine's thread, shown on any.
#pragma once

#include <forerun/request.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace forerun {

class Histogram {
 public:
  // Upper bounds in seconds; what is longer is counted too.
  static constexpr auto kBounds = std::to_array<double>(
      {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60});

  void add(double seconds, uint64_t n = 1);
  // Up to each bound, and all.
  std::array<uint64_t, kBounds.size() + 1> cumulated() const;
  double sum() const { return sum_; }

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_ = {};
  std::atomic<double> sum_ = 0;
};

class Latencies {
 public:
  // Watches a request that is about to be submitted. This outlives it.
  void watch(Request& request);

  const Histogram& queue() const { return queue_; }
  const Histogram& first_token() const { return first_token_; }
  const Histogram& inter_token() const { return inter_token_; }

 private:
  Histogram queue_;
  Histogram first_token_;
  Histogram inter_token_;
};

}  // namespace forerun
