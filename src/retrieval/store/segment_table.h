// The segments of an open store, oldest first, as everybody sees them.
//
// Readers take a snapshot, an immutable list, and never wait: the lock is held only while
// pointers are copied, and never by a thread of low priority. In the list stand first the
// segments that lie in files, then live text that is being folded into files ("frozen"),
// then live text that still changes: documents are added at its end, and small segments
// are merged in memory.
//
// Thread-safe; who may call what at the same time is said below.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "retrieval/segment.h"

namespace forerun {

class SegmentTable {
 public:
  struct View {
    std::shared_ptr<const SegmentList> segments;
    size_t n_files = 0;   // the first ones lie in files
    size_t n_frozen = 0;  // the first ones, files included, are not merged in memory

    std::span<const std::shared_ptr<const Segment>> all() const { return *segments; }
    std::span<const std::shared_ptr<const Segment>> files() const { return all().first(n_files); }
    std::span<const std::shared_ptr<const Segment>> live() const { return all().subspan(n_files); }
    std::span<const std::shared_ptr<const Segment>> changing() const { return all().subspan(n_frozen); }
  };

  explicit SegmentTable(SegmentList files);

  std::shared_ptr<const SegmentList> snapshot() const;
  View view() const;

  // One adder at a time.
  void append(std::shared_ptr<const Segment> segment);
  void replace_newest(std::shared_ptr<const Segment> segment);
  // Everything so far is frozen. No adder and no merge in memory at the same time.
  void freeze();

  // Puts one segment in the place of some that changing() had next to each other.
  void replace_changing(std::span<const std::shared_ptr<const Segment>> segments,
                        std::shared_ptr<const Segment> by);
  // Puts files in the place of everything frozen.
  void replace_frozen(const SegmentList& files);

  // Frees segments that were replaced and that no snapshot holds any more. Unmapping a
  // large file takes milliseconds, so whoever lets go of a snapshot must not have to.
  void free_unused();

 private:
  // Publishes what `change` makes of the list.
  template <typename Change>
  void update(Change change);

  mutable std::mutex mutex_;
  View view_;
  SegmentList replaced_;
};

}  // namespace forerun
