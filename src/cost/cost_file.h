// What is known of passes' costs from run to run: a file per model, device, threads and kernels.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost/calibration.h"
#include "model/executor.h"

namespace forerun {

// What costs depend on.
struct CostKey {
  std::string key;      // all of it: the file's name
  std::string machine;  // all but the model
  uint64_t n_bytes;     // of weights that a pass reads

  static CostKey of(Executor& executor);
};

// ${XDG_CACHE_HOME:-~/.cache}/forerun/calibration
std::filesystem::path calibration_folder();

// load: nullopt when there is no file, or it is damaged, which is the same. save replaces it in one
// step; throws Error{kIo}.
std::optional<Calibration> load_costs(const std::filesystem::path& folder, const CostKey& key);
void save_costs(const std::filesystem::path& folder, const CostKey& key, const Calibration& costs);

// Of the model on this machine whose size is nearest, as if it had this one's; nullopt: there is none.
std::optional<CostCurve> load_similar_curve(const std::filesystem::path& folder, const CostKey& key);

// The kept costs, or measured ones, which are then kept if the folder can be written.
Calibration calibrated(Executor& executor, const CalibrationOptions& options = {});

}  // namespace forerun
