#include "cli/output_file.h"

#include <unistd.h>

#include "core/error.h"

namespace forerun {

void check_output(const std::filesystem::path& path, const std::vector<std::string>& inputs) {
  if (path.empty()) fail(ErrorCode::kInvalidArgument, "the output has no name: give that of a file");
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code ignored;  // what cannot be asked is not so
  if (!std::filesystem::is_directory(folder, ignored)) {
    fail(ErrorCode::kNotFound, "there is no folder {} for the output", folder.string());
  }
  if (std::filesystem::is_directory(path, ignored)) {
    fail(ErrorCode::kInvalidArgument, "the output {} is a folder: name a file", path.string());
  }
  if (!std::filesystem::exists(path, ignored)) {
    if (::access(folder.c_str(), W_OK) == 0) return;
    fail(ErrorCode::kIo, "cannot write into the folder {}: name another one for the output",
         folder.string());
  }
  if (!std::filesystem::is_regular_file(path, ignored) || ::access(path.c_str(), W_OK) != 0) {
    fail(ErrorCode::kIo, "the output {} is there and cannot be replaced: name another file",
         path.string());
  }
  for (const std::string& input : inputs) {
    std::error_code is_elsewhere;
    if (!std::filesystem::equivalent(path, input, is_elsewhere)) continue;
    fail(ErrorCode::kInvalidArgument, "the output {} is also read: name another file", path.string());
  }
}

}  // namespace forerun
