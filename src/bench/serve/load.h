// Many clients of a server at once, and how long they wait.
#pragma once

#include <string>
#include <vector>

namespace forerun {

struct LoadOptions {
  int port = 0;
  std::string path = "/v1/chat/completions";
  std::vector<std::string> bodies;  // of the requests, which ask for streams with usage
  int n_streams = 1;                // clients that ask one after the other
  // Instead of that, so many requests a second, as they come (at random, the same with the same seed),
  // whether earlier ones are answered or not. 0: as above.
  double rate = 0;
  uint64_t seed = 1;
};

// What one client saw of one answer.
struct AnswerTimes {
  double first_s = 0;  // until its first text
  double total_s = 0;
  std::vector<double> gaps = {};  // between texts, in seconds
  int n_tokens = 0;
  std::string text = {};
};

struct LoadResult {
  double seconds = 0;                // all of it
  std::vector<AnswerTimes> answers;  // in the order of the requests
  int n_failed = 0;                  // of these

  double tokens_per_second() const;
  // The p-th part (0.5: the median) of all answers' first texts, and of all gaps.
  double first_s(double p) const;
  double gap_s(double p) const;
};

// Throws Error where nobody listens.
LoadResult run_load(const LoadOptions& options);

}  // namespace forerun
