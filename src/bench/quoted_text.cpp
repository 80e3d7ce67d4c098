#include "bench/quoted_text.h"

#include <functional>
#include <utility>

#include "core/error.h"

namespace forerun {
namespace {

enum class Role {
  kMark,     // a quote, or a backslash before a character
  kLiteral,  // stands for itself whatever it is
  kPlain,    // may separate
};

void for_each_character(std::string_view text, const std::function<void(char, Role)>& visit) {
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      is_quoted = !is_quoted;
      visit(text[i], Role::kMark);
    } else if (text[i] == '\\') {
      if (i + 1 == text.size()) {
        fail(ErrorCode::kInvalidArgument, "'{}' ends with a backslash: give two for one", text);
      }
      visit(text[i], Role::kMark);
      visit(text[++i], Role::kLiteral);
    } else {
      visit(text[i], is_quoted ? Role::kLiteral : Role::kPlain);
    }
  }
  if (is_quoted) fail(ErrorCode::kInvalidArgument, "'{}' has a quote (\") that is not closed", text);
}

}  // namespace

std::vector<std::string> split_quoted(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  const auto end_part = [&] {
    if (!part.empty()) parts.push_back(std::exchange(part, {}));
  };
  for_each_character(text, [&](char c, Role role) {
    if (role == Role::kPlain && c == separator) {
      end_part();
    } else {
      part.push_back(c);
    }
  });
  end_part();
  return parts;
}

std::string unquoted(std::string_view text) {
  std::string meant;
  for_each_character(text, [&](char c, Role role) {
    if (role != Role::kMark) meant.push_back(c);
  });
  return meant;
}

}  // namespace forerun
