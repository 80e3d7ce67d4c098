// The results of `bench spec` for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/spec/bench.h"

namespace forerun {

// Everything that was measured, and what is needed to measure it again: options, seed,
// versions, hardware (docs/interface.md has the fields).
nlohmann::ordered_json spec_bench_json(const SpecBenchOptions& options, const SpecBenchResult& result);

// The part of it about sampling, less the temperature and the seed.
nlohmann::ordered_json sampling_json(const SamplingOptions& sampling);

// "auto is 2.31 times as fast as llama.cpp's best mode (llama:ngram-mod; ...)"; empty if no
// llama-server took part.
std::string peer_words(const SpecBenchResult& result);

}  // namespace forerun
