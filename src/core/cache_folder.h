// Where forerun keeps what it can make again.
#pragma once

#include <filesystem>

namespace forerun {

// ${XDG_CACHE_HOME:-~/.cache}/forerun
std::filesystem::path cache_folder();

}  // namespace forerun
