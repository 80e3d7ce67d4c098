// What passes cost, as far as is known without waiting, and what is kept of it from run to run: a file
// per model, device, threads and kernels.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost/pass_costs.h"
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

// The kept costs, or measured ones (calibrate()), which are then kept if the folder can be written.
Calibration calibrated(Executor& executor, const std::function<void(double)>& progress);

// What was measured or learnt in earlier runs; else what other models took on this machine, for this
// one's size; else a guess. The executor outlives it.
PassCosts known_costs(Executor& executor);

// Keeps what was learnt, if enough passes were seen and the folder can be written.
void keep_costs(Executor& executor, const PassCosts& costs);

}  // namespace forerun
