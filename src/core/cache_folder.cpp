#include "core/cache_folder.h"

#include <cstdlib>

namespace forerun {

std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path base = variable("XDG_CACHE_HOME");
  if (base.empty()) base = variable("HOME") / ".cache";
  return base / "forerun";
}

}  // namespace forerun
