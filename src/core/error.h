// Errors that are not bugs.
//
// What is the user's or the environment's fault (a bad file, a bad option, no
// memory) is thrown as an Error with a one-line message that says what to do;
// every program of ours turns it into one line for its user. An expected outcome
// (no match, a full cache) is an optional or an enum, never an exception. A bug
// is a CHECK (check.h).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace forerun {

enum class ErrorCode {
  kInvalidArgument,  // an option or a request field makes no sense
  kNotFound,         // a file, a model name or a device does not exist
  kInvalidFile,      // a file is damaged or not of the expected kind
  kUnsupported,      // understood, but forerun cannot do it
  kContextFull,      // the text does not fit into the context
  kOutOfMemory,      // the machine or the device has not enough memory
  kIo,               // reading or writing failed
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error; the message is a fmt format string and its arguments.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace forerun
