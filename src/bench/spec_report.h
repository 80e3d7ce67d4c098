// The results of `bench spec` for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/spec_bench.h"

namespace forerun {

// Everything that was measured, and what is needed to measure it again: options, seed,
// versions, hardware (docs/interface.md has the fields).
nlohmann::ordered_json spec_bench_json(const SpecBenchOptions& options, const SpecBenchResult& result);

}  // namespace forerun
