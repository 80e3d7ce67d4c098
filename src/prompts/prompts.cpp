#include "prompts/prompts.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/hash.h"
#include "optimise/random.h"

namespace forerun {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::vector<std::string>> turns_of(const Json& object) {
  if (const auto turns = object.find("turns"); turns != object.end() && turns->is_array()) {
    std::vector<std::string> texts;
    for (const Json& turn : *turns) {
      if (!turn.is_string()) return std::nullopt;
      texts.push_back(turn.get<std::string>());
    }
    return texts.empty() ? std::nullopt : std::optional(texts);
  }
  if (const std::string prompt = text_of(object, "prompt"); !prompt.empty()) return {{prompt}};
  if (const std::string question = text_of(object, "question"); !question.empty()) return {{question}};
  if (std::string task = text_of(object, "text"); !task.empty()) {
    // As the authors of MBPP ask for it: the tests say what the function is called.
    if (const auto tests = object.find("test_list"); tests != object.end() && tests->is_array()) {
      task += " Your code should pass these tests:\n";
      for (const Json& test : *tests) {
        task.push_back('\n');
        if (test.is_string()) task.append(test.get<std::string>());
      }
    }
    return {{task}};
  }
  if (std::string task = text_of(object, "instruction"); !task.empty()) {
    const Json instances = object.value("instances", Json::array());
    const std::string input =
        instances.is_array() && !instances.empty() ? text_of(instances[0], "input") : "";
    return {{input.empty() ? task : task + "\n\n" + input}};
  }
  return std::nullopt;
}

std::optional<std::string> id_of(const Json& object) {
  for (const char* field : {"id", "question_id", "task_id"}) {
    if (const auto found = object.find(field); found != object.end()) {
      return found->is_string() ? found->get<std::string>() : found->dump();
    }
  }
  return std::nullopt;
}

}  // namespace

PromptFile read_prompts(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::error_code ignored;
  if (!stream || std::filesystem::is_directory(path, ignored)) {
    fail(ErrorCode::kNotFound, "cannot read prompts from {}", path.string());
  }
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::vector<BenchPrompt> prompts;
  std::istringstream lines(bytes);
  std::string text;
  for (size_t line = 1; std::getline(lines, text); ++line) {
    std::string place = fmt::format("{} line {}", path.string(), line);
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) {
      fail(ErrorCode::kInvalidFile, "{} is not valid JSON in UTF-8", place);
    }
    const auto turns = object.is_object() ? turns_of(object) : std::nullopt;
    if (!turns) {
      fail(ErrorCode::kInvalidFile,
           "{}: expected an object with turns, prompt, question, text or instruction", place);
    }
    const std::optional<std::string> id = id_of(object);
    if (id) place += fmt::format(" (id {})", *id);
    prompts.push_back({.id = id.value_or(std::to_string(line)),
                       .category = text_of(object, "category"),
                       .turns = *turns,
                       .place = std::move(place)});
  }
  if (prompts.empty()) fail(ErrorCode::kInvalidFile, "{} has no prompts", path.string());
  return {.prompts = std::move(prompts), .hash = StableHash::of(bytes)};
}

std::vector<BenchPrompt> limited(const std::vector<BenchPrompt>& prompts, int limit) {
  if (limit <= 0 || prompts.size() <= static_cast<size_t>(limit)) return prompts;
  // Round after round, one prompt of each category.
  std::map<std::string, std::vector<size_t>> by_category;
  for (size_t i = 0; i < prompts.size(); ++i) by_category[prompts[i].category].push_back(i);
  std::set<size_t> chosen;
  for (size_t round = 0; chosen.size() < static_cast<size_t>(limit); ++round) {
    for (const auto& [category, members] : by_category) {
      if (round < members.size() && chosen.size() < static_cast<size_t>(limit)) {
        chosen.insert(members[round]);
      }
    }
  }
  std::vector<BenchPrompt> result;
  for (const size_t i : chosen) result.push_back(prompts[i]);
  return result;
}

std::vector<BenchPrompt> mixed_stream(const std::vector<BenchPrompt>& prompts, double ratio,
                                      uint64_t seed) {
  std::map<std::string, std::deque<const BenchPrompt*>> left;  // none of them is empty
  for (const BenchPrompt& prompt : prompts) left[prompt.category].push_back(&prompt);
  Random random(seed);
  // A random category, but not this one unless it is the only one.
  const auto other = [&](const std::string* category) {
    const bool leaves_out = category != nullptr && left.size() > 1;
    auto at = left.begin();
    int n = random.below(static_cast<int>(left.size()) - (leaves_out ? 1 : 0));
    for (;; ++at) {
      if (leaves_out && at->first == *category) continue;
      if (n-- == 0) return at;
    }
  };
  std::vector<BenchPrompt> stream;
  for (auto at = left.empty() ? left.end() : other(nullptr); at != left.end();) {
    stream.push_back(*at->second.front());
    at->second.pop_front();
    const bool leaves = random.uniform() < ratio;
    if (at->second.empty()) {
      left.erase(at);
      at = left.empty() ? left.end() : other(nullptr);
    } else if (leaves) {
      at = other(&at->first);
    }
  }
  return stream;
}

}  // namespace forerun
