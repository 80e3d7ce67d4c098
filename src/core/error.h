// Errors that are not bugs.
//
// What is the user's or the environment's fault (a bad file, a bad option, no
// memory) is thrown as an Error with a one-line message that says what to do;
// every program of ours turns it into one line for its user. An expected outcome
// (no match, a full cache) is an optional or an enum, never an exception. A bug
// is a CHECK (check.h).
#pragma once

#include <fmt/format.h>
#include <forerun/error.h>

#include <utility>

namespace forerun {

// Throws Error; the message is a fmt format string and its arguments.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace forerun
