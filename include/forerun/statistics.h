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
  kInput,       // the text of the request itself
  kDatastore,   // other texts
  kGuess,       // a window of guesses that the model improves (Jacobi)
  kLayers,      // the model itself, with some of its blocks left out
  kDraftModel,  // a smaller model
  kPrediction,  // a text that the caller expects
  kGrammar,     // what the grammar of the answer forces
};
constexpr int kDraftSources = 7;
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

// What an engine does and did.
struct EngineStatistics {
  int n_running = 0;
  int n_waiting = 0;
  int n_cells = 0;       // tokens whose keys and values the cache has room for
  int n_cells_used = 0;  // by requests that run, and by texts that are kept
  int64_t n_passes = 0;
  int64_t n_rows = 0;           // of all passes
  int64_t n_decoding = 0;       // requests that got tokens from a pass, of all passes
  int64_t n_suspended = 0;      // requests that had to wait for cells again
  int64_t n_prompt_tokens = 0;  // that were read
  int64_t n_cached_tokens = 0;  // that need not be
  int64_t n_predicted_tokens = 0;
  int n_longest = 0;             // tokens of the longest text, prompt included
  double prompt_seconds = 0;     // passes that only read, and the share of those that do both
  double predicted_seconds = 0;  // the rest
  // By how much drafts shortened this: what as many tokens would have taken without them, by what
  // passes cost, less what they took. Where drafts did not pay it falls.
  double saved_seconds = 0;
  SpeculationStatistics speculation;
};

}  // namespace forerun
