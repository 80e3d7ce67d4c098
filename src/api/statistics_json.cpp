#include "api/statistics_json.h"

#include <string>

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json counts_json(const DraftCounts& counts) {
  return {{"drafted", counts.n_drafted}, {"tested", counts.n_tested}, {"accepted", counts.n_accepted}};
}

Json by_source_json(const SpeculationStatistics& statistics) {
  Json sources = Json::object();
  for (size_t i = 0; i < statistics.by_source.size(); ++i) {
    if (statistics.by_source[i].n_drafted == 0) continue;
    sources[std::string(to_string(static_cast<DraftSource>(i)))] = counts_json(statistics.by_source[i]);
  }
  return sources;
}

Json by_depth_json(const SpeculationStatistics& statistics) {
  Json depths = Json::array();
  for (const DraftCounts& counts : statistics.by_depth) depths.push_back(counts_json(counts));
  return depths;
}

}  // namespace forerun
