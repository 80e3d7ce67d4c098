#include "retrieval/sampling.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace forerun {
namespace {

double size_of(const Segment& segment) {
  return static_cast<double>(segment.n_tokens());
}

double share_by_size(int max_samples, std::span<const Segment* const> segments, size_t i) {
  double total = 0.0;
  for (const Segment* segment : segments) total += size_of(*segment);
  return std::round(max_samples * size_of(*segments[i]) / total);
}

void sample_paper(int32_t segment, Segment::Range range, double share, std::vector<Sample>& out) {
  const int64_t step = std::max<int64_t>(1, range.size() / std::max<int64_t>(1, std::llround(share)));
  for (int64_t rank = range.begin; rank < range.end; rank += step) out.push_back({segment, rank});
}

void sample_code(int32_t segment, Segment::Range range, double share, std::vector<Sample>& out) {
  const auto last = static_cast<double>(range.size() - 1);
  // A segment without a share still shows its first place.
  if (share < 1.0) {
    out.push_back({segment, range.begin});
    return;
  }
  const double step = std::max(1.0, last / share);
  int64_t previous = -1;
  for (int i = 0; i * step <= last; ++i) {
    const int64_t offset = std::llround(i * step);
    if (offset != previous) out.push_back({segment, range.begin + offset});
    previous = offset;
  }
}

// The authors' rule would give a large segment any number of samples if the first one is
// small, as with live text; so never more than all.
double code_share(int max_samples, std::span<const Segment* const> segments, size_t i) {
  const double by_first = std::round(max_samples / 5.0 * size_of(*segments[i]) / size_of(*segments[0]));
  return std::min<double>(max_samples, std::max(share_by_size(max_samples, segments, i), by_first));
}

// The middles of `max_samples` equal parts of all places, one segment after the other.
void sample_pooled(int max_samples, std::span<const Segment::Range> ranges, std::vector<Sample>& out) {
  int64_t total = 0;
  for (const Segment::Range& range : ranges) total += range.size();
  const auto n = std::min<int64_t>(max_samples, total);
  int64_t before = 0;
  int64_t i = 0;
  for (size_t segment = 0; segment < ranges.size(); ++segment) {
    const Segment::Range& range = ranges[segment];
    for (; i < n; ++i) {
      const int64_t offset = (2 * i + 1) * total / (2 * n) - before;
      if (offset >= range.size()) break;
      out.push_back({static_cast<int32_t>(segment), range.begin + offset});
    }
    before += range.size();
  }
}

}  // namespace

std::optional<RetrievalVariant> retrieval_variant(std::string_view name) {
  const auto* found = std::ranges::find(kRetrievalVariantNames, name);
  if (found == std::end(kRetrievalVariantNames)) return std::nullopt;
  return static_cast<RetrievalVariant>(found - kRetrievalVariantNames);
}

void choose_samples(RetrievalVariant variant, int max_samples, std::span<const Segment* const> segments,
                    std::span<const Segment::Range> ranges, std::vector<Sample>& out) {
  CHECK(max_samples > 0 && segments.size() == ranges.size());
  if (variant == RetrievalVariant::kPooled) {
    sample_pooled(max_samples, ranges, out);
    return;
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    if (ranges[i].size() == 0) continue;
    const auto segment = static_cast<int32_t>(i);
    if (variant == RetrievalVariant::kPaper) {
      sample_paper(segment, ranges[i], share_by_size(max_samples, segments, i), out);
    } else {
      sample_code(segment, ranges[i], code_share(max_samples, segments, i), out);
    }
  }
}

}  // namespace forerun
