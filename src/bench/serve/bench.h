// Servers beside each other under the same load: how much they write, and how long clients wait.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/llama/server.h"
#include "bench/serve/load.h"

namespace forerun {

struct ServeContender {
  std::string name;
  LlamaServerOptions server;
};

struct ServeBenchOptions {
  std::vector<ServeContender> contenders;  // the first is what the others are compared with
  std::vector<int> streams{1, 4, 16, 64};
  double rate = 0;                  // requests a second instead; 0: streams
  std::vector<std::string> bodies;  // of one round; more than there are are taken again
  int n_requests = 16;              // of a round for each stream, at most
  int n_rounds = 3;                 // each contender in each, in turn
  std::function<void(int n_done, int n_all)> progress = {};
};

struct ServeBenchRow {
  std::string name;
  int n_streams = 0;
  double tokens_per_second = 0;  // the median of the rounds, as all of these
  double ratio = 0;              // to the first contender in the same round
  double first_p50 = 0, first_p99 = 0, gap_p50 = 0, gap_p99 = 0;  // seconds
  int n_failed = 0;
  int n_other_texts = 0;  // than the first contender's
};

// Throws Error.
std::vector<ServeBenchRow> bench_serve(const ServeBenchOptions& options);
nlohmann::ordered_json serve_bench_json(const std::vector<ServeBenchRow>& rows);

}  // namespace forerun
