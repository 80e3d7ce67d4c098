#include "grammar/grammar_rules.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "core/error.h"

namespace forerun {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxDepth = 200;
constexpr size_t kLongestExplanation = 160;

// Calls visit(i) for every byte but those in literals, classes and comments.
template <typename Visit>
void visit_structure(const std::string& text, const Visit& visit) {
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
    } else {
      visit(i);
    }
  }
}

// Of parentheses.
int depth_of(const std::string& text) {
  int depth = 0, deepest = 0;
  visit_structure(text, [&](size_t i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    deepest = std::max(deepest, depth);
  });
  return deepest;
}

// libllama's parser repeats what is to be repeated at least 5 and at most 3 times for ever.
void check_repetitions(const std::string& text) {
  visit_structure(text, [&](size_t i) {
    unsigned least = 0, most = 0;
    if (text[i] != '{' || std::sscanf(text.c_str() + i, "{ %u , %u", &least, &most) != 2) return;
    if (most < least) {
      fail(ErrorCode::kInvalidArgument,
           "the grammar makes no sense: something is to be repeated at least {} and at most {} times",
           least, most);
    }
  });
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

void check_names(const llama_grammar_parser& parser) {
  for (const auto& [name, id] : parser.symbol_ids) {
    if (id >= parser.rules.size() || parser.rules[id].empty()) fail_rule("there is no rule " + name);
  }
}

bool may_be_empty(const llama_grammar_rule& rule) {
  bool at_start = true;
  for (const llama_grammar_element& element : rule) {
    if (at_start && is_end(element)) return true;
    at_start = is_end(element);
  }
  return false;
}

// The rules that a text of each may begin with. (What is empty only by way of others counts as text
// here, as in libllama: grammars rely on it.)
std::vector<std::vector<uint32_t>> first_rules(const llama_grammar_rules& rules) {
  std::vector<bool> empty;
  for (const llama_grammar_rule& rule : rules) empty.push_back(may_be_empty(rule));
  std::vector<std::vector<uint32_t>> first(rules.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    bool is_first = true;
    for (const llama_grammar_element& element : rules[i]) {
      const bool is_rule = element.type == LLAMA_GRETYPE_RULE_REF;
      if (is_first && is_rule) first[i].push_back(element.value);
      is_first = is_end(element) || (is_first && is_rule && empty[element.value]);
    }
  }
  return first;
}

// Rules may refer to each other in one long chain, so this does not recurse.
void check_recursion(const llama_grammar_rules& rules) {
  const auto first = first_rules(rules);
  enum class Mark { kNew, kOpen, kDone };
  std::vector<Mark> marks(rules.size(), Mark::kNew);
  struct Visit {
    uint32_t rule;
    size_t next = 0;
  };
  std::vector<Visit> path;
  const auto enter = [&](uint32_t rule) {
    if (marks[rule] == Mark::kOpen) {
      fail(ErrorCode::kInvalidArgument,
           "the grammar cannot be used: one of its rules begins with itself");
    }
    if (marks[rule] == Mark::kDone) return;
    marks[rule] = Mark::kOpen;
    path.push_back({rule});
  };
  for (uint32_t start = 0; start < rules.size(); ++start) {
    enter(start);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next < first[visit.rule].size()) {
        enter(first[visit.rule][visit.next++]);
      } else {
        marks[visit.rule] = Mark::kDone;
        path.pop_back();
      }
    }
  }
}

}  // namespace

GrammarRules read_grammar(const std::string& text, const Vocabulary& vocabulary) {
  if (text.size() > kMaxBytes) {
    fail(ErrorCode::kInvalidArgument, "the grammar has {} bytes, but may have {}", text.size(),
         kMaxBytes);
  }
  if (depth_of(text) > kMaxDepth) {
    fail(ErrorCode::kInvalidArgument, "the grammar is nested more than {} levels deep", kMaxDepth);
  }
  check_repetitions(text);
  llama_grammar_parser parser(vocabulary.raw());
  try {
    const char* left = text.c_str() + first_rule(text);
    while (*left != 0) left = parser.parse_rule(left);
  } catch (const std::exception& error) {
    fail_rule(error.what());
  }
  check_names(parser);
  const auto root = parser.symbol_ids.find("root");
  if (root == parser.symbol_ids.end()) fail_rule("there is no rule root");
  check_recursion(parser.rules);
  return {.rules = std::move(parser.rules), .root = root->second};
}

}  // namespace forerun
