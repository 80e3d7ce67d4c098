// The files of the page, as the build put them into the program.
#pragma once

#include <span>
#include <string_view>

namespace forerun {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view bytes;
};

std::span<const PageFile> page_files();

}  // namespace forerun
