// Measures what passes cost on this machine, with this model, device and thread count.
//
// Takes a second or so for a small model; the result is kept in a file and measured again
// when anything that it depends on changes.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "budget/cost_curve.h"
#include "model/executor.h"

namespace forerun {

struct CalibrationOptions {
  int max_rows = 64;  // the largest pass that is measured
  // Gets the share that is done. May be empty.
  std::function<void(double)> progress = {};
};

struct Calibration {
  CostCurve curve;
  BlockCosts blocks;
};

// Measures passes over random tokens. The executor's cache has a few hundred free cells;
// it is as before afterwards. Throws Error when the device fails.
Calibration calibrate(Executor& executor, const CalibrationOptions& options = {});

// Times of passes by their number of rows, ascending, made plausible: something else may have run
// meanwhile, longer than medians endure. A pass takes no longer than one with more rows, nor
// than several with fewer.
std::vector<double> without_outliers(std::span<const int> n_rows, std::vector<double> seconds);

// What a calibration depends on: another one is measured when this is another.
std::string calibration_key(Executor& executor);

// ${XDG_CACHE_HOME:-~/.cache}/forerun/calibration
std::filesystem::path calibration_folder();

// The file of a key in a folder. load: nullopt when there is none, or it is damaged, which
// is the same: it is measured again. save replaces it in one step; throws Error{kIo}.
std::optional<Calibration> load_calibration(const std::filesystem::path& folder, const std::string& key);
void save_calibration(const std::filesystem::path& folder, const std::string& key,
                      const Calibration& calibration);

// The kept calibration, or a new one, which is then kept if the folder can be written.
Calibration calibrated(Executor& executor, const CalibrationOptions& options = {});

// The same when it is first asked for; at most once. The executor outlives it.
std::function<const Calibration&()> calibrated_if_asked(Executor& executor,
                                                        const CalibrationOptions& options = {});

}  // namespace forerun
