// Is a store whole, and if not, what of it can be kept?
//
// Every document is kept that lies outside of what is damaged: of a damaged segment those whose
// text matches its checksums (retrieval/segment_salvage.h), with a new index; of a damaged
// journal the records that are whole. If documents of segments are lost, the store forgets
// which inputs it was built from (sources.h), so that building again brings them back.
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
  int64_t n_lost_documents = 0;       // of segments; a repair knows
  std::vector<std::string> problems;  // a line each; empty: all is whole
  std::vector<std::string> notes;     // what is no damage, such as a document cut off by a crash
};

// Gets the share that is done.
using CheckProgress = std::function<void(double)>;

// Reads everything and compares it with its checksums. Changes nothing. Throws Error if
// there is no store, its manifest cannot be read, or a newer forerun made a part of it; all
// else is in the report.
StoreReport verify_store(const std::filesystem::path& folder, const CheckProgress& progress = {});

// Takes out of the store what is damaged. The report says what that was, and what is whole
// now. Throws Error, and then the store is as it was.
StoreReport repair_store(const std::filesystem::path& folder, const CheckProgress& progress = {});

}  // namespace forerun
