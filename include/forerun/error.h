// What forerun throws: the user's or the environment's fault, in one line that says what
// to do.
#pragma once

#include <forerun/export.h>

#include <stdexcept>
#include <string>

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

class FORERUN_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace forerun
