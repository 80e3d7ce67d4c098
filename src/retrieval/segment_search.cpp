#include "retrieval/segment_search.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace forerun {
namespace {

KeyFormat directory_format(const Segment& segment) {
  return {segment.identity().n_vocab, SegmentDirectory::kKeyTokens};
}

// Below 0 where the text at `place` comes before `tokens`, 0 where it begins with them.
// Ends at a document's end, as separators are below every token.
int compare(const SegmentText& text, int64_t place, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    const uint32_t value = text.value(place++);
    const uint32_t wanted = SegmentText::value_of(token);
    if (value != wanted) return value < wanted ? -1 : 1;
  }
  return 0;
}

bool in_vocabulary(std::span<const TokenId> tokens, int n_vocab) {
  return std::all_of(tokens.begin(), tokens.end(),
                     [&](TokenId token) { return to_int(token) >= 0 && to_int(token) < n_vocab; });
}

}  // namespace

std::span<const Segment::Range> SegmentSearch::find(std::span<const Segment* const> segments,
                                                    std::span<const TokenId> tokens) {
  CHECK(!tokens.empty() && tokens.size() <= Segment::kOrderDepth);
  bounds_.clear();
  for (const Segment* segment : segments) add_segment(*segment, tokens);
  descend(tokens);
  bisect(tokens);
  ranges_.clear();
  for (size_t i = 0; i < bounds_.size(); i += 2) {
    const int64_t begin = bounds_[i].begin;
    // Not before the beginning, even in a damaged index.
    ranges_.push_back({begin, std::max(begin, bounds_[i + 1].begin)});
  }
  return ranges_;
}

void SegmentSearch::add_segment(const Segment& segment, std::span<const TokenId> tokens) {
  Bound bound{&segment, false, {}, 0, 0, 0};
  if (in_vocabulary(tokens, segment.identity().n_vocab)) {
    const KeyFormat::Interval keys = directory_format(segment).interval(tokens);
    bound.directory.target = keys.first;
    bound.end = segment.n_entries();
    bounds_.push_back(bound);
    bound.upper = true;
    // Where nothing is above the last key, target 0 stands for "behind all entries".
    bound.directory.target = keys.last + 1;
    bounds_.push_back(bound);
  } else {
    bounds_.insert(bounds_.end(), 2, bound);
  }
}

// Narrows the bounds by the keys of the directories.
void SegmentSearch::descend(std::span<const TokenId> tokens) {
  int n_levels = 0;
  for (const Bound& bound : bounds_)
    n_levels = std::max(n_levels, bound.segment->directory().n_levels());
  for (int level = n_levels - 1; level >= 0; --level) {
    for (Bound& bound : bounds_) {
      const SegmentDirectory& directory = bound.segment->directory();
      if (level >= directory.n_levels()) continue;
      directory.step(bound.directory, level);
      if (level > 0) directory.prefetch(bound.directory, level - 1);
    }
  }
  for (size_t i = 0; i < bounds_.size(); i += 2) {
    Bound& lower = bounds_[i];
    Bound& upper = bounds_[i + 1];
    if (lower.end == 0) continue;
    const SegmentDirectory& directory = lower.segment->directory();
    lower.begin = directory.begin(lower.directory);
    if (upper.directory.target != 0) {
      upper.begin = directory.begin(upper.directory);
      upper.end = directory.end(upper.directory);
    } else {
      upper.begin = lower.begin;
    }
    // Keys tell texts apart only as far as they go.
    if (static_cast<int>(tokens.size()) <= directory_format(*lower.segment).n_tokens()) {
      lower.end = directory.end(lower.directory);
    } else {
      lower.end = upper.end;
      upper.begin = lower.begin;
    }
  }
}

// Halves the bounds by the text, all of them in turn.
void SegmentSearch::bisect(std::span<const TokenId> tokens) {
  active_.clear();
  for (Bound& bound : bounds_) active_.push_back(&bound);
  while (true) {
    std::erase_if(active_, [](const Bound* bound) { return bound->begin >= bound->end; });
    if (active_.empty()) return;
    for (const Bound* bound : active_) {
      __builtin_prefetch(bound->segment->order().data() + bound->middle());
    }
    for (Bound* bound : active_) {
      bound->place = bound->segment->place(bound->middle());
      bound->segment->text().prefetch(bound->place);
    }
    for (Bound* bound : active_) {
      const int order = compare(bound->segment->text(), bound->place, tokens);
      if (order < 0 || (bound->upper && order == 0)) {
        bound->begin = bound->middle() + 1;
      } else {
        bound->end = bound->middle();
      }
    }
  }
}

}  // namespace forerun
