// What became of the tokens that were drafted.
#pragma once

#include <forerun/export.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace forerun {

// Where a proposal was found. Statistics are counted and acceptance is learnt per source.
enum class DraftSource : uint8_t {
  kInput,      // the text of the request itself
  kDatastore,  // other texts
  kGuess,      // a window of guesses that the model improves (Jacobi)
  kModel,      // a model that drafts
};
constexpr int kDraftSources = 4;
FORERUN_API std::string_view to_string(DraftSource source);  // a stable name for JSON

struct FORERUN_API DraftCounts {
  int64_t n_drafted = 0;   // tokens that were verified along with the text
  int64_t n_tested = 0;    // of these, compared with the model's own token
  int64_t n_accepted = 0;  // of these, equal to it

  void add(const DraftCounts& other);
};

struct FORERUN_API SpeculationStatistics {
  int64_t n_steps = 0;   // passes of the model after the prompt
  int64_t n_tokens = 0;  // tokens that they gave, one that ended the text included
  std::array<DraftCounts, kDraftSources> by_source{};
  std::vector<DraftCounts> by_depth;  // [0]: drafted to follow the text at once
  double draft_ms = 0;                // finding drafts
  double pass_ms = 0;                 // computing
  double sample_ms = 0;               // choosing tokens and comparing

  DraftCounts total() const;
  double tokens_per_step() const {
    return n_steps > 0 ? static_cast<double>(n_tokens) / static_cast<double>(n_steps) : 0;
  }
  // Accepted of tested.
  double accept_rate() const;
  void add(const SpeculationStatistics& other);
};

}  // namespace forerun
