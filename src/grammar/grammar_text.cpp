#include "grammar/grammar_text.h"

#include <llama-grammar.h>

#include <algorithm>
#include <exception>

#include "core/error.h"

namespace forerun {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxDepth = 200;
constexpr size_t kLongestExplanation = 160;

// Of parentheses, without those in literals, classes and comments.
int depth_of(const std::string& text) {
  int depth = 0, deepest = 0;
  char closing = 0;  // of the literal, class or comment that it is in
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (closing != 0) {
      if (c == '\\' && closing != '\n') {
        ++i;
      } else if (c == closing || (closing == '\n' && c == '\r')) {
        closing = 0;
      }
    } else if (c == '"') {
      closing = '"';
    } else if (c == '[') {
      closing = ']';
    } else if (c == '#') {
      closing = '\n';
    } else if (c == '(') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ')') {
      --depth;
    }
  }
  return deepest;
}

// Where it begins, behind spaces and comments.
size_t first_rule(const std::string& text) {
  size_t at = text.find_first_not_of(" \t\r\n");
  while (at != std::string::npos && text[at] == '#') {
    at = text.find_first_of("\r\n", at);
    if (at != std::string::npos) at = text.find_first_not_of(" \t\r\n", at);
  }
  return std::min(at, text.size());
}

[[noreturn]] void fail_rule(const std::string& why) {
  fail(ErrorCode::kInvalidArgument, "the grammar makes no sense: {}",
       why.substr(0, std::min(why.find('\n'), kLongestExplanation)));
}

void check_rules(const llama_grammar_parser& parser) {
  for (const auto& [name, id] : parser.symbol_ids) {
    if (id >= parser.rules.size() || parser.rules[id].empty()) fail_rule("there is no rule " + name);
  }
}

}  // namespace

void check_grammar_text(const std::string& text, const Vocabulary& vocabulary) {
  if (text.size() > kMaxBytes) {
    fail(ErrorCode::kInvalidArgument, "the grammar has {} bytes, but may have {}", text.size(),
         kMaxBytes);
  }
  if (depth_of(text) > kMaxDepth) {
    fail(ErrorCode::kInvalidArgument, "the grammar is nested more than {} levels deep", kMaxDepth);
  }
  llama_grammar_parser parser(vocabulary.raw());
  try {
    const char* left = text.c_str() + first_rule(text);
    while (*left != 0) left = parser.parse_rule(left);
  } catch (const std::exception& error) {
    fail_rule(error.what());
  }
  check_rules(parser);
}

}  // namespace forerun
