// Reads large segments from the disk, beside everything else.
//
// A search goes to hundreds of places of a segment. Where its file is not in memory it waits for the
// disk at each of them, longer than whole passes take, and reading the file from one end to the other
// takes no longer than the first few searches. So large files are read at once, on a thread, and
// searched from then on; nobody waits for that.
//
// Used from one thread, ready() from any. Holds no segment that nobody else holds, except while it reads
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "retrieval/segment.h"

namespace forerun {

class Preload {
 public:
  struct Limits {
    int64_t small_bytes = int64_t{4} << 20;  // files up to this size are searched as they are
    int64_t max_bytes;  // if there is more to read than this nothing is: it would not stay in memory
  };
  explicit Preload(const Limits& limits) : limits_(limits) {}
  // Gives up what is not read yet.
  ~Preload();
  Preload(const Preload&) = delete;
  Preload& operator=(const Preload&) = delete;

  // Segments to read; before start().
  void add(const SegmentList& segments);
  // Once.
  void start();
  // Returns when all is read.
  void wait();

  // `segments` without those that are still to be read.
  std::shared_ptr<const SegmentList> ready(std::shared_ptr<const SegmentList> segments) const;

 private:
  bool waits(const std::shared_ptr<const Segment>& segment) const;

  Limits limits_;
  int64_t n_bytes_ = 0;
  std::vector<std::weak_ptr<const Segment>> segments_;  // read in this order
  std::atomic<size_t> n_read_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace forerun
