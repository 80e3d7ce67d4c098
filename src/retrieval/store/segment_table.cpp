#include "retrieval/store/segment_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"

namespace forerun {
namespace {

bool contains(std::span<const std::shared_ptr<const Segment>> list,
              const std::shared_ptr<const Segment>& segment) {
  return std::find(list.begin(), list.end(), segment) != list.end();
}

}  // namespace

SegmentTable::SegmentTable(SegmentList files) {
  view_.n_files = view_.n_frozen = files.size();
  view_.segments = std::make_shared<const SegmentList>(std::move(files));
}

template <typename Change>
void SegmentTable::update(Change change) {
  std::shared_ptr<const SegmentList> former;  // freed after the lock is released
  const std::lock_guard lock(mutex_);
  former = view_.segments;
  SegmentList next = *former;
  change(next);
  view_.segments = std::make_shared<const SegmentList>(std::move(next));
}

std::shared_ptr<const SegmentList> SegmentTable::snapshot() const {
  const std::lock_guard lock(mutex_);
  return view_.segments;
}

SegmentTable::View SegmentTable::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

void SegmentTable::append(std::shared_ptr<const Segment> segment) {
  update([&](SegmentList& list) { list.push_back(std::move(segment)); });
}

void SegmentTable::replace_newest(std::shared_ptr<const Segment> segment) {
  update([&](SegmentList& list) {
    CHECK(list.size() > view_.n_frozen);
    list.back() = std::move(segment);
  });
}

void SegmentTable::freeze() {
  const std::lock_guard lock(mutex_);
  view_.n_frozen = view_.segments->size();
}

void SegmentTable::replace_changing(std::span<const std::shared_ptr<const Segment>> segments,
                                    std::shared_ptr<const Segment> by) {
  CHECK(!segments.empty());
  update([&](SegmentList& list) {
    const auto changing = list.begin() + static_cast<std::ptrdiff_t>(view_.n_frozen);
    const auto first = std::search(changing, list.end(), segments.begin(), segments.end());
    CHECK(first != list.end());
    replaced_.insert(replaced_.end(), segments.begin(), segments.end());
    *first = std::move(by);
    list.erase(first + 1, first + static_cast<std::ptrdiff_t>(segments.size()));
  });
}

void SegmentTable::replace_frozen(const SegmentList& files) {
  update([&](SegmentList& list) {
    const auto changing = list.begin() + static_cast<std::ptrdiff_t>(view_.n_frozen);
    std::copy_if(list.begin(), changing, std::back_inserter(replaced_),
                 [&](const auto& segment) { return !contains(files, segment); });
    list.erase(list.begin(), changing);
    list.insert(list.begin(), files.begin(), files.end());
    view_.n_files = view_.n_frozen = files.size();
  });
}

void SegmentTable::free_unused() {
  SegmentList unused;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto used = std::partition(replaced_.begin(), replaced_.end(),
                                   [](const auto& segment) { return segment.use_count() > 1; });
  unused.assign(std::make_move_iterator(used), std::make_move_iterator(replaced_.end()));
  replaced_.erase(used, replaced_.end());
}

}  // namespace forerun
