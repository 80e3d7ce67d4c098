// The results of `bench spec` for people: one HTML page that needs nothing else.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/spec/bench.h"

namespace forerun {

// `json` is spec_bench_json()'s.
std::string spec_page(const nlohmann::ordered_json& json, const SpecBenchResult& result);

}  // namespace forerun
