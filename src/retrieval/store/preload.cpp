#include "retrieval/store/preload.h"

#include <algorithm>

#include "core/cpu_topology.h"

namespace forerun {
namespace {

// So few that the end of the program does not wait for long, nor whoever maps memory.
constexpr size_t kBytesAtOnce = size_t{4} << 20;

}  // namespace

Preload::~Preload() {
  stopping_ = true;
  wait();
}

void Preload::add(const SegmentList& segments) {
  for (const auto& segment : segments) {
    if (segment->file() == nullptr || segment->n_bytes() <= limits_.small_bytes) continue;
    segments_.push_back(segment);
    n_bytes_ += segment->n_bytes();
  }
}

void Preload::start() {
  if (n_bytes_ > limits_.max_bytes) segments_.clear();
  if (segments_.empty()) return;
  thread_ = std::thread([this] {
    unpin_current_thread();
    for (const auto& listed : segments_) {
      const auto segment = listed.lock();
      const auto n_bytes = segment ? static_cast<size_t>(segment->n_bytes()) : 0;
      for (size_t offset = 0; offset < n_bytes && !stopping_; offset += kBytesAtOnce) {
        segment->file()->load(offset, std::min(kBytesAtOnce, n_bytes - offset));
      }
      ++n_read_;
    }
  });
}

void Preload::wait() {
  if (thread_.joinable()) thread_.join();
}

bool Preload::waits(const std::shared_ptr<const Segment>& segment) const {
  const auto first = segments_.begin() + static_cast<std::ptrdiff_t>(n_read_.load());
  return std::any_of(first, segments_.end(),
                     [&](const auto& waiting) { return waiting.lock() == segment; });
}

std::shared_ptr<const SegmentList> Preload::ready(std::shared_ptr<const SegmentList> segments) const {
  if (n_read_ == segments_.size() || !segments) return segments;
  auto ready = std::make_shared<SegmentList>(*segments);
  std::erase_if(*ready, [&](const auto& segment) { return waits(segment); });
  return ready;
}

}  // namespace forerun
