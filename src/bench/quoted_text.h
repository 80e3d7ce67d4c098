// Lists in one word of a command line, whose parts may contain what separates them.
//
// As in a shell, a backslash lets the next character stand for itself, and so do double quotes
// with all characters between them but backslashes and double quotes:
//
//   a:b        two parts at ':'
//   "a:b"      one
//   a\:b       one
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// The parts between separators that do not stand for themselves, without empty ones. They keep
// their quotes and backslashes. Throws Error{kInvalidArgument} for a quote that is not closed, and
// a backslash at the end.
std::vector<std::string> split_quoted(std::string_view text, char separator);

// What is meant: the text without quotes and backslashes. Throws the same.
std::string unquoted(std::string_view text);

}  // namespace forerun
