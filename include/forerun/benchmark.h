// What only benchmarks tell an engine, and ask of it.
#pragma once

#include <forerun/statistics.h>
#include <forerun/token.h>

#include <optional>
#include <vector>

namespace forerun {

// Of one request, which has it as Request::benchmark. The engine writes to it while the request
// runs; the text does not depend on it.
struct BenchmarkRecord {
  // The answer, where it is known beforehand: for drafts that stop where they should (the option
  // lookahead, "oracle").
  std::optional<std::vector<TokenId>> known_answer = std::nullopt;
  // What was drafted, per pass after the prompt. Whatever was there before is forgotten.
  std::vector<DraftCounts> steps = {};
};

}  // namespace forerun
