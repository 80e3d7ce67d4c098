#include "retrieval/store/preload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;
using testing::ElementsAre;

// A segment with so many documents, in a file or in memory.
std::shared_ptr<const Segment> segment_of(int n_documents, const std::filesystem::path& path = {}) {
  std::vector<TokenId> text;
  for (int i = 0; i < n_documents; ++i) {
    for (const TokenId token : numbered_document(i)) text.push_back(token);
    text.push_back(Segment::kSeparator);
  }
  auto segment = Segment::build(std::move(text), kIdentity, 1);
  if (path.empty()) return segment;
  segment->write(path);
  return Segment::open(path);
}

class PreloadTest : public testing::Test {
 protected:
  TempDir folder_;
  std::shared_ptr<const Segment> large_ = segment_of(2000, folder_.file("large"));
  std::shared_ptr<const Segment> small_ = segment_of(2, folder_.file("small"));
  std::shared_ptr<const Segment> in_memory_ = segment_of(2000);
  std::shared_ptr<const SegmentList> all_ =
      std::make_shared<SegmentList>(SegmentList{large_, small_, in_memory_});
  const Preload::Limits limits_{.small_bytes = 10'000, .max_bytes = 1'000'000};
};

TEST_F(PreloadTest, LargeFilesAreSearchedWhenTheyAreRead) {
  Preload preload(limits_);
  EXPECT_EQ(preload.ready(nullptr), nullptr);
  EXPECT_EQ(preload.ready(all_), all_);
  preload.add(*all_);
  EXPECT_THAT(*preload.ready(all_), ElementsAre(small_, in_memory_));
  EXPECT_EQ(preload.ready(nullptr), nullptr);
  preload.start();
  preload.wait();
  EXPECT_EQ(preload.ready(all_), all_);
}

TEST_F(PreloadTest, WhatWouldNotStayInMemoryIsNotRead) {
  Preload preload({.small_bytes = limits_.small_bytes, .max_bytes = large_->n_bytes() - 1});
  preload.add(*all_);
  preload.start();
  EXPECT_EQ(preload.ready(all_), all_) << "nothing waits";
}

// A store drops segments that it merged; their files are to go.
TEST_F(PreloadTest, KeepsNoSegment) {
  Preload preload(limits_);
  preload.add(*all_);
  const std::weak_ptr<const Segment> gone = large_;
  all_.reset();
  large_.reset();
  EXPECT_TRUE(gone.expired());
  preload.start();
  preload.wait();
}

TEST_F(PreloadTest, EndsWhetherItBeganOrNot) {
  Preload never(limits_);
  never.add(*all_);
  Preload at_once(limits_);
  at_once.add(*all_);
  at_once.start();
}

}  // namespace
}  // namespace forerun
