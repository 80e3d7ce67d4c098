// Is a store whole, and if not, what of it can be kept?
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace forerun {

struct StoreReport {
  int64_t n_tokens = 0;  // of what is whole
  int64_t n_documents = 0;
  int n_segments = 0;                 // files
  std::vector<std::string> problems;  // a line each; empty: all is whole
  std::vector<std::string> notes;     // what is no damage, such as a document cut off by a crash
};

// Gets the share that is done.
using CheckProgress = std::function<void(double)>;

// Reads everything and compares it with its checksums. Changes nothing. Throws Error if
// there is no store or its manifest cannot be read; all else is in the report.
StoreReport verify_store(const std::filesystem::path& folder, const CheckProgress& progress = {});

// Takes out of the store what is damaged. The report says what that was. Throws Error.
StoreReport repair_store(const std::filesystem::path& folder, const CheckProgress& progress = {});

}  // namespace forerun
