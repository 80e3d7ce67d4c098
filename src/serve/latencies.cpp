#include "serve/latencies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/stopwatch.h"

namespace forerun {

void Histogram::add(double seconds, uint64_t n) {
  const auto bin = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
  counts_[static_cast<size_t>(bin)] += n;
  sum_ += seconds * static_cast<double>(n);
}

std::array<uint64_t, Histogram::kBounds.size() + 1> Histogram::cumulated() const {
  std::array<uint64_t, kBounds.size() + 1> result{};
  uint64_t n = 0;
  for (size_t i = 0; i < counts_.size(); ++i) result[i] = n += counts_[i];
  return result;
}

void Latencies::watch(Request& request) {
  const Stopwatch submitted;
  request.on_progress = [this, submitted, is_told = false,
                         told = std::move(request.on_progress)](const PromptProgress& progress) mutable {
    if (!std::exchange(is_told, true)) queue_.add(submitted.seconds());
    if (told) told(progress);
  };
  request.on_chunk = [this, submitted, last = std::optional<Stopwatch>(),
                      told = std::move(request.on_chunk)](const Chunk& chunk) mutable {
    if (!last) {
      first_token_.add(submitted.seconds());
    } else if (!chunk.tokens.empty()) {
      const auto n = chunk.tokens.size();
      inter_token_.add(last->seconds() / static_cast<double>(n), n);
    }
    last = Stopwatch();
    if (told) told(chunk);
  };
}

}  // namespace forerun
