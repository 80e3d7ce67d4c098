// Prompts of public benchmarks, and one's own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace forerun {

struct BenchPrompt {
  std::string id;
  std::string category;            // "" where the file has none
  std::vector<std::string> turns;  // what the user says, one after the other
};

// One JSON object per line, in any of these forms:
//   Spec-Bench   {"category": ..., "turns": [...]}
//   plain        {"prompt": ...}
//   GSM8K        {"question": ..., "answer": ...}
//   MBPP         {"text": ..., "code": ..., "test_list": [...]}
//   Alpaca       {"instruction": ..., "instances": [{"input": ...}]}
// Throws Error that names the line.
std::vector<BenchPrompt> read_prompts(const std::filesystem::path& path);

// At most `limit`, the same number of each category as far as they go, in the file's order.
std::vector<BenchPrompt> limited(const std::vector<BenchPrompt>& prompts, int limit);

}  // namespace forerun
