#include "retrieval/store/segment_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;
using testing::ElementsAre;

std::shared_ptr<const Segment> segment() {
  return Segment::build(document({1, -1}), kIdentity, 1);
}

TEST(SegmentTable, ReplacesLiveTextInMemoryAndByFiles) {
  const auto a = segment(), b = segment(), c = segment(), d = segment(), bc = segment(),
             file = segment();
  SegmentTable table({a});
  table.append(b);
  table.append(segment());
  table.replace_newest(c);
  table.append(d);
  EXPECT_THAT(*table.snapshot(), ElementsAre(a, b, c, d));
  table.replace_changing(std::vector{b, c}, bc);
  EXPECT_THAT(*table.snapshot(), ElementsAre(a, bc, d));
  EXPECT_EQ(table.view().changing().size(), 2u);

  table.freeze();
  const auto newest = segment();
  table.append(newest);
  EXPECT_EQ(table.view().changing().size(), 1u);
  EXPECT_EQ(table.view().live().size(), 3u);
  table.replace_frozen({a, file});
  EXPECT_THAT(*table.snapshot(), ElementsAre(a, file, newest));
  EXPECT_THAT(table.view().files(), ElementsAre(a, file));
}

TEST(SegmentTable, FreesWhatWasReplacedOnlyWhenItIsAskedTo) {
  SegmentTable table({});
  table.append(segment());
  table.append(segment());
  auto snapshot = table.snapshot();
  const std::weak_ptr<const Segment> replaced = snapshot->front();
  table.replace_changing(*table.snapshot(), segment());
  table.free_unused();
  EXPECT_FALSE(replaced.expired()) << "a snapshot has it";
  snapshot.reset();
  EXPECT_FALSE(replaced.expired()) << "letting go of a snapshot frees nothing";
  table.free_unused();
  EXPECT_TRUE(replaced.expired());
}

}  // namespace
}  // namespace forerun
