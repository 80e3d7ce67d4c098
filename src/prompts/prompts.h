// Prompts of public benchmarks, and one's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace forerun {

struct BenchPrompt {
  std::string id;
  std::string category;            // "" where the file has none
  std::vector<std::string> turns;  // what the user says, one after the other
  std::string place = {};          // where it is, for messages: "FILE line 3 (id 81)"
};

// Where prompts came from, so that a run can be repeated.
struct PromptOrigin {
  std::string path;   // as it was given
  uint64_t hash = 0;  // StableHash of the file
  int limit = 0;      // see limited()
  // See mixed_stream(); nullopt: in the file's order.
  std::optional<double> mix = std::nullopt;
};

struct PromptFile {
  std::vector<BenchPrompt> prompts;
  uint64_t hash = 0;
};

// One JSON object per line, in any of these forms:
//   Spec-Bench   {"category": ..., "turns": [...]}
//   plain        {"prompt": ...}
//   GSM8K        {"question": ..., "answer": ...}
//   MBPP         {"text": ..., "code": ..., "test_list": [...]}
//   Alpaca       {"instruction": ..., "instances": [{"input": ...}]}
// Throws Error that names the line.
PromptFile read_prompts(const std::filesystem::path& path);

// At most `limit` (0: all), the same number of each category as far as they go, in the file's order.
std::vector<BenchPrompt> limited(const std::vector<BenchPrompt>& prompts, int limit);

// The same prompts in the order of KNN-SSD's stream (Song et al., 2025): after each prompt the
// stream goes on to a random other category with chance `ratio` in [0, 1], and also when its
// own has no more. The prompts of a category keep their order. The same for the same seed.
std::vector<BenchPrompt> mixed_stream(const std::vector<BenchPrompt>& prompts, double ratio,
                                      uint64_t seed);

}  // namespace forerun
