// Prompts of public benchmarks, and one's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace forerun {

struct BenchPrompt {
  std::string id;
  std::string category;            // "" where the file has none
  std::vector<std::string> turns;  // what the user says, one after the other
};

// Where prompts came from, so that a run can be repeated.
struct PromptOrigin {
  std::string path;   // as it was given
  uint64_t hash = 0;  // StableHash of the file
  int limit = 0;      // see limited()
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

}  // namespace forerun
