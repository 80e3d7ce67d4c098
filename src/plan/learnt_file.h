// What planners learnt, from run to run: a file for each way to speculate with a model on a machine.
#pragma once

#include <cstdint>
#include <filesystem>

#include "plan/planner.h"

namespace forerun {

// ${XDG_CACHE_HOME:-~/.cache}/forerun/learnt
std::filesystem::path learnt_folder();

// load: nothing when there is no file, or it is damaged, which is the same. save replaces it in one
// step; throws Error{kIo}.
Learnt load_learnt(const std::filesystem::path& folder, uint64_t key);
void save_learnt(const std::filesystem::path& folder, uint64_t key, const Learnt& learnt);

}  // namespace forerun
