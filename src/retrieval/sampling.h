// Which of the places where some tokens occur are looked at.
//
// Tokens may occur at millions of places. A fixed number of them, taken at even distances
// from the index, shows what follows and how often, because the index is in the order of
// what follows. SSSD (Marzollo et al., ACL 2026) divides that number over the segments by
// their sizes; its paper and its code differ in how.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "retrieval/segment.h"

namespace forerun {

enum class RetrievalVariant {
  // The paper's Algorithm 2: a segment gets a share of the samples by its size; the
  // distance between samples is a whole number.
  kPaper,
  // The authors' code: as above but at least a fifth of the samples of the first segment
  // in proportion to its size; the distance is a fraction, places are rounded.
  kCode,
  // Ours: as if all segments were one. Each sample stands for as many places as any other,
  // so that the shares are those of the whole, and there are never more than asked for.
  kPooled,
};
constexpr std::string_view kRetrievalVariantNames[] = {"paper", "code", "pooled"};
std::optional<RetrievalVariant> retrieval_variant(std::string_view name);

struct Sample {
  int32_t segment;
  int64_t rank;  // in its index
  friend bool operator==(const Sample&, const Sample&) = default;
};

// Appends about `max_samples` (at least 1) samples of the ranges, one range per segment.
// Samples of one segment are together and in the order of its index.
void choose_samples(RetrievalVariant variant, int max_samples, std::span<const Segment* const> segments,
                    std::span<const Segment::Range> ranges, std::vector<Sample>& out);

}  // namespace forerun
