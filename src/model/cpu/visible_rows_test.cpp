#include "model/cpu/visible_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun {
namespace {

// The cells a row sees, by position.
std::vector<int32_t> seen(const VisibleCells& row) {
  std::vector<int32_t> cells;
  for (int32_t p = row.first; p < row.end; ++p) {
    cells.push_back(p < row.n_shared ? row.shared[p] : row.own[p - row.n_shared]);
  }
  return cells;
}

class VisibleRowsTest : public ::testing::Test {
 protected:
  // A sequence with n committed cells, from `first` on.
  SequenceId text(int n) {
    const SequenceId sequence = cells_.create();
    cells_.commit(sequence, cells_.extend_chain(sequence, n));
    return sequence;
  }
  Row row(SequenceId sequence, std::optional<NodeId> parent) {
    return {.sequence = sequence, .node = cells_.extend(sequence, parent).value()};
  }

  KvCells cells_{64};
  VisibleRows visible_;
};

TEST_F(VisibleRowsTest, ChainsShareOneList) {
  const SequenceId s = text(3);
  const Row a = row(s, std::nullopt);
  const Row b = row(s, a.node);
  const Row c = row(s, b.node);
  visible_.fill(cells_, std::vector{a, b, c}, {});
  const auto rows = visible_.all();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(seen(rows[0]), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(seen(rows[1]), (std::vector<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(seen(rows[2]), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(rows[0].own, rows[2].own);
  EXPECT_TRUE(visible_.windowed().empty());
}

TEST_F(VisibleRowsTest, BranchesSeeTheirAncestorsOnly) {
  const SequenceId s = text(2);
  const Row a = row(s, std::nullopt);
  const Row b = row(s, std::nullopt);
  const Row c = row(s, a.node);
  const Row d = row(s, c.node);
  visible_.fill(cells_, std::vector{a, b, c, d}, {});
  const auto rows = visible_.all();
  EXPECT_EQ(seen(rows[0]), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(seen(rows[1]), (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(seen(rows[2]), (std::vector<int32_t>{0, 1, 2, 4}));
  EXPECT_EQ(seen(rows[3]), (std::vector<int32_t>{0, 1, 2, 4, 5}));
}

TEST_F(VisibleRowsTest, NodesOfEarlierPassesAreSeen) {
  const SequenceId s = text(1);
  const Row a = row(s, std::nullopt);
  const Row b = row(s, a.node);
  visible_.fill(cells_, std::vector{b}, {});
  EXPECT_EQ(seen(visible_.all()[0]), (std::vector<int32_t>{0, 1, 2}));
}

TEST_F(VisibleRowsTest, BranchesOffCommittedTextSeeWhatIsBeforeThem) {
  const SequenceId s = text(5);
  const Row a{.sequence = s, .node = cells_.branch_at(s, Position{2}).value()};
  const Row b = row(s, a.node);
  visible_.fill(cells_, std::vector{a, b}, {});
  EXPECT_EQ(seen(visible_.all()[0]), (std::vector<int32_t>{0, 1, 5}));
  EXPECT_EQ(seen(visible_.all()[1]), (std::vector<int32_t>{0, 1, 5, 6}));
}

TEST_F(VisibleRowsTest, PositionsOrderCellsNotTheirPlaces) {
  const SequenceId gone = text(3);
  const SequenceId s = text(2);
  cells_.remove(gone);
  const Row a = row(s, std::nullopt);
  visible_.fill(cells_, std::vector{a}, {});
  EXPECT_EQ(seen(visible_.all()[0]), (std::vector<int32_t>{3, 4, 0}));
}

TEST_F(VisibleRowsTest, WindowsHideTheBeginning) {
  const SequenceId s = text(4);
  const Row a = row(s, std::nullopt);
  const Row b = row(s, a.node);
  visible_.fill(cells_, std::vector{a, b}, {.n = 3});
  EXPECT_EQ(seen(visible_.windowed()[0]), (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(seen(visible_.windowed()[1]), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(visible_.all()[1].first, 0);
}

TEST_F(VisibleRowsTest, RunsBeginAtMultiples) {
  const SequenceId s = text(4);
  const Row a = row(s, std::nullopt);
  const Row b = row(s, a.node);
  const Row c = row(s, b.node);
  visible_.fill(cells_, std::vector{a, b, c}, {.n = 3, .in_runs = true});
  EXPECT_EQ(seen(visible_.windowed()[0]), (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(seen(visible_.windowed()[1]), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(seen(visible_.windowed()[2]), (std::vector<int32_t>{6}));
}

}  // namespace
}  // namespace forerun
