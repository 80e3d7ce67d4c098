#include "core/error.h"

namespace forerun {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kInvalidFile: return "invalid_file";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kContextFull: return "context_full";
    case ErrorCode::kOutOfMemory: return "out_of_memory";
    case ErrorCode::kIo: return "io";
  }
  return "unknown";
}

}  // namespace forerun
