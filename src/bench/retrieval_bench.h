// Measures datastores: building, searching, and what adding to one costs those who search.
//
// The text is made up: words drawn by Zipf's law, in sentences that come back now and then,
// so that prefixes of every length match many times, few times and never.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace forerun {

struct RetrievalBenchOptions {
  std::filesystem::path folder;  // where the stores are made, and removed again
  int64_t n_tokens = 100'000'000;
  int n_segments = 8;
  int n_queries = 20'000;
  int n_steps = 2'000;  // with text being added and folded
  int n_threads = 2;    // that build, and that steps keep busy
};

struct Percentiles {
  double median = 0;
  double p99 = 0;
};

struct RetrievalBenchResult {
  double tokens_per_second = 0;     // building
  double bytes_per_token = 0;       // on disk
  double peak_bytes_per_token = 0;  // memory that building took, of the largest segment
  Percentiles search_us;
  // A step keeps all threads busy for about 5 ms, and a search comes before it: alone, and
  // while text is added that a background thread folds into segments.
  Percentiles step_us;
  Percentiles folding_step_us;
  int64_t n_folded = 0;  // tokens
};

// Throws Error.
RetrievalBenchResult run_retrieval_bench(const RetrievalBenchOptions& options,
                                         const std::function<void(std::string_view)>& progress);

}  // namespace forerun
