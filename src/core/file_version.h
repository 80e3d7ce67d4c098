// Files of ours say which version of their format they have.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/error.h"

namespace forerun {

// Throws the Error for a file of a version that this forerun does not read, which are those
// from `oldest` to `newest`: {kUnsupported} a newer forerun made it, {kInvalidFile} no forerun
// that is still read did.
inline void check_file_version(const std::filesystem::path& path, int64_t version, int64_t newest,
                               int64_t oldest = 1) {
  if (version > newest) {
    fail(ErrorCode::kUnsupported,
         "{} was made by a newer version of forerun: it has format version {} and this one reads up "
         "to {}; use that version",
         path.string(), version, newest);
  }
  if (version < oldest) {
    fail(ErrorCode::kInvalidFile, "{} is damaged: there is no format version {}", path.string(),
         version);
  }
}

}  // namespace forerun
