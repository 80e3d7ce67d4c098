// Files that commands write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace forerun {

// Throws Error unless a file can be there: before work whose result would be lost. It must not be
// one of the `inputs`.
void check_output(const std::filesystem::path& path, const std::vector<std::string>& inputs = {});

}  // namespace forerun
