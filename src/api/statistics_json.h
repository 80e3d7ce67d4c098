// Statistics of drafts as JSON: drafted, tested and accepted tokens (docs/interface.md).
#pragma once

#include <forerun/statistics.h>

#include <nlohmann/json.hpp>

namespace forerun {

nlohmann::ordered_json counts_json(const DraftCounts& counts);
// By the names of the sources that drafted anything.
nlohmann::ordered_json by_source_json(const SpeculationStatistics& statistics);
nlohmann::ordered_json by_depth_json(const SpeculationStatistics& statistics);

}  // namespace forerun
