#include <forerun/statistics.h>

#include <algorithm>

namespace forerun {

std::string_view to_string(DraftSource source) {
  switch (source) {
    case DraftSource::kInput: return "input";
    case DraftSource::kDatastore: return "datastore";
    case DraftSource::kGuess: return "guess";
    case DraftSource::kLayers: return "layers";
    case DraftSource::kDraftModel: return "draft_model";
    case DraftSource::kPrediction: return "prediction";
    case DraftSource::kGrammar: return "grammar";
  }
  return "";
}

void DraftCounts::add(const DraftCounts& other) {
  n_drafted += other.n_drafted;
  n_tested += other.n_tested;
  n_accepted += other.n_accepted;
}

DraftCounts SpeculationStatistics::total() const {
  DraftCounts sum;
  for (const DraftCounts& counts : by_source) sum.add(counts);
  return sum;
}

double SpeculationStatistics::accept_rate() const {
  const DraftCounts counts = total();
  return counts.n_tested > 0
             ? static_cast<double>(counts.n_accepted) / static_cast<double>(counts.n_tested)
             : 0;
}

void SpeculationStatistics::add(const SpeculationStatistics& other) {
  n_steps += other.n_steps;
  n_tokens += other.n_tokens;
  for (size_t i = 0; i < by_source.size(); ++i) by_source[i].add(other.by_source[i]);
  by_depth.resize(std::max(by_depth.size(), other.by_depth.size()));
  for (size_t i = 0; i < other.by_depth.size(); ++i) by_depth[i].add(other.by_depth[i]);
  draft_ms += other.draft_ms;
  pass_ms += other.pass_ms;
  sample_ms += other.sample_ms;
}

}  // namespace forerun
