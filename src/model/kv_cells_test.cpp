#include "model/kv_cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace forerun {
namespace {

std::vector<int32_t> visible(const KvCells& cells, SequenceId sequence, NodeId node, int window = 0) {
  std::vector<int32_t> seen;
  cells.for_each_visible(sequence, node, window, [&](int32_t cell) { seen.push_back(cell); });
  std::sort(seen.begin(), seen.end());
  return seen;
}

TEST(KvCells, StartsEmpty) {
  KvCells cells(8);
  EXPECT_EQ(cells.n_cells(), 8);
  EXPECT_EQ(cells.n_free(), 8);
  EXPECT_EQ(cells.n_used_span(), 0);
  EXPECT_FALSE(cells.exists(SequenceId{0}));
}

TEST(KvCells, CommitKeepsThePathAndFreesTheRest) {
  KvCells cells(16);
  const SequenceId s = cells.create();
  const NodeId root = cells.extend(s).value();
  const NodeId left = cells.extend(s, root).value();
  const NodeId right = cells.extend(s, root).value();
  cells.extend(s, left).value();
  const int32_t root_cell = cells.cell(s, root);
  const int32_t right_cell = cells.cell(s, right);
  const std::vector<NodeId> path = {root, right};
  cells.commit(s, path);
  EXPECT_EQ(cells.n_committed(s), 2);
  EXPECT_EQ(cells.n_scratch(s), 0);
  EXPECT_EQ(cells.n_free(), 14);
  EXPECT_EQ(cells.committed_cells(s)[0], root_cell);
  EXPECT_EQ(cells.committed_cells(s)[1], right_cell);
}

TEST(KvCells, CommitOfNothingIsARollback) {
  KvCells cells(4);
  const SequenceId s = cells.create();
  cells.extend_chain(s, 3);
  cells.commit(s, {});
  EXPECT_EQ(cells.n_committed(s), 0);
  EXPECT_EQ(cells.n_free(), 4);
  EXPECT_EQ(cells.n_used_span(), 0);
}

TEST(KvCells, SiblingsDoNotSeeEachOther) {
  KvCells cells(16);
  const SequenceId s = cells.create();
  cells.commit(s, cells.extend_chain(s, 2));
  const NodeId a = cells.extend(s).value();
  const NodeId b = cells.extend(s).value();
  EXPECT_EQ(cells.position(s, a), Position{2});
  EXPECT_EQ(cells.position(s, b), Position{2});
  EXPECT_EQ(visible(cells, s, a).size(), 3u);
  EXPECT_EQ(visible(cells, s, a).back(), cells.cell(s, a));
  EXPECT_FALSE(std::ranges::count(visible(cells, s, b), cells.cell(s, a)));
}

TEST(KvCells, BranchAtSeesOnlyWhatIsBeforeIt) {
  KvCells cells(16);
  const SequenceId s = cells.create();
  cells.commit(s, cells.extend_chain(s, 5));
  const NodeId branch = cells.branch_at(s, Position{2}).value();
  const NodeId next = cells.extend(s, branch).value();
  EXPECT_EQ(cells.position(s, branch), Position{2});
  EXPECT_EQ(cells.position(s, next), Position{3});
  const auto committed = cells.committed_cells(s);
  EXPECT_EQ(visible(cells, s, next), (std::vector<int32_t>{committed[0], committed[1],
                                                           cells.cell(s, branch), cells.cell(s, next)}));
}

TEST(KvCells, WindowLimitsWhatIsSeen) {
  KvCells cells(16);
  const SequenceId s = cells.create();
  cells.commit(s, cells.extend_chain(s, 3));
  const auto chain = cells.extend_chain(s, 3);  // positions 3, 4, 5
  EXPECT_EQ(visible(cells, s, chain[2], 1), (std::vector<int32_t>{cells.cell(s, chain[2])}));
  EXPECT_EQ(visible(cells, s, chain[2], 3).size(), 3u);
  EXPECT_EQ(visible(cells, s, chain[2], 5).size(), 5u);
  EXPECT_EQ(visible(cells, s, chain[2], 100).size(), 6u);
}

TEST(KvCells, ForkSharesCellsUntilBothAreGone) {
  KvCells cells(8);
  const SequenceId a = cells.create();
  cells.commit(a, cells.extend_chain(a, 4));
  const SequenceId b = cells.fork(a, 3);
  EXPECT_EQ(cells.n_free(), 4) << "sharing costs no cells";
  EXPECT_TRUE(std::ranges::equal(cells.committed_cells(b), cells.committed_cells(a).first(3)));
  cells.remove(a);
  EXPECT_FALSE(cells.exists(a));
  EXPECT_EQ(cells.n_free(), 5) << "only the cell that was not shared";
  cells.remove(b);
  EXPECT_EQ(cells.n_free(), 8);
  EXPECT_EQ(cells.n_used_span(), 0);
}

TEST(KvCells, FullPoolIsAnOrdinaryOutcome) {
  KvCells cells(3);
  const SequenceId a = cells.create();
  const SequenceId b = cells.create();
  cells.commit(a, cells.extend_chain(a, 2));
  const NodeId last = cells.extend(b).value();
  EXPECT_EQ(cells.extend(a), std::nullopt);
  EXPECT_EQ(cells.extend(b, last), std::nullopt);
  EXPECT_EQ(cells.branch_at(a, Position{0}), std::nullopt);
  EXPECT_EQ(cells.n_scratch(a), 0);
  EXPECT_EQ(cells.n_scratch(b), 1);
  cells.remove(a);
  EXPECT_TRUE(cells.extend(b, last).has_value());
}

TEST(KvCells, CellAtFindsAncestors) {
  KvCells cells(16);
  const SequenceId s = cells.create();
  cells.commit(s, cells.extend_chain(s, 4));
  const NodeId branch = cells.branch_at(s, Position{2}).value();
  const NodeId next = cells.extend(s, branch).value();
  EXPECT_EQ(cells.cell_at(s, next, Position{-1}), std::nullopt);
  EXPECT_EQ(cells.cell_at(s, next, Position{1}), cells.committed_cells(s)[1]);
  EXPECT_EQ(cells.cell_at(s, next, Position{2}), cells.cell(s, branch));
  EXPECT_EQ(cells.cell_at(s, next, Position{3}), cells.cell(s, next));
  EXPECT_EQ(cells.cell_at(s, branch, Position{3}), std::nullopt) << "that is behind it";
}

TEST(KvCellsDeathTest, BrokenPreconditionsAreBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  KvCells cells(8);
  const SequenceId s = cells.create();
  cells.commit(s, cells.extend_chain(s, 2));
  EXPECT_DEATH(cells.branch_at(s, Position{3}), "CHECK");
  EXPECT_DEATH(cells.fork(s, 3), "CHECK");
  EXPECT_DEATH(cells.n_committed(SequenceId{5}), "CHECK");
  const NodeId inside = cells.branch_at(s, Position{1}).value();
  const std::vector<NodeId> path = {inside};
  EXPECT_DEATH(cells.commit(s, path), "CHECK") << "it would replace committed text";
}

// --- random operations against a model without cells ---
//
// Every token ever written gets a number of its own. The model keeps, for each
// sequence and node, the plain list of the numbers it must see. A map from numbers to
// cells, filled when a node is made, then says which cells those are: if KvCells ever
// gave a cell away while somebody still sees it, two numbers of one list would lie in
// one cell or the lists would differ.

struct NaiveNode {
  NodeId id{};
  std::vector<int> path{};  // numbers of all it sees, itself last
  int parent = -1;          // index into nodes, or -1
  bool at_end = false;      // whether its root hangs at the end of the committed text
};

struct NaiveSequence {
  std::vector<int> committed{};
  std::vector<NaiveNode> nodes{};
};

class Naive {
 public:
  explicit Naive(int n_cells, uint32_t seed) : cells_(n_cells), random_(seed) {}

  void step() {
    switch (pick(11)) {
      case 0: create(); break;
      case 1: fork(); break;
      case 2: remove(); break;
      case 3: branch(); break;
      case 4: commit(); break;
      case 5: rollback(); break;
      case 6: truncate(); break;
      default: extend(); break;
    }
  }

  void check() const {
    std::set<int32_t> used;
    for (const auto& [id, sequence] : sequences_) {
      check_sequence(id, sequence);
      for (const int token : sequence.committed) used.insert(cell_of_.at(token));
      for (const NaiveNode& node : sequence.nodes) used.insert(cell_of_.at(node.path.back()));
    }
    ASSERT_EQ(cells_.n_free(), cells_.n_cells() - static_cast<int>(used.size()));
    ASSERT_EQ(cells_.n_used_span(), used.empty() ? 0 : *used.rbegin() + 1);
  }

  int n_full() const { return n_full_; }

 private:
  void check_sequence(SequenceId id, const NaiveSequence& sequence) const {
    ASSERT_TRUE(cells_.exists(id));
    ASSERT_EQ(cells_.n_committed(id), static_cast<int>(sequence.committed.size()));
    ASSERT_EQ(cells_.n_scratch(id), static_cast<int>(sequence.nodes.size()));
    for (size_t i = 0; i < sequence.committed.size(); ++i) {
      ASSERT_EQ(cells_.committed_cells(id)[i], cell_of_.at(sequence.committed[i]));
    }
    for (const NaiveNode& node : sequence.nodes) {
      for (const int window : {0, 1, 3}) check_node(id, node, window);
    }
  }

  void check_node(SequenceId id, const NaiveNode& node, int window) const {
    const int n = static_cast<int>(node.path.size());
    ASSERT_EQ(cells_.position(id, node.id), Position{n - 1});
    std::vector<int32_t> expected;
    for (int i = 0; i < n; ++i) {
      const int32_t cell = cell_of_.at(node.path[static_cast<size_t>(i)]);
      ASSERT_EQ(cells_.cell_at(id, node.id, Position{i}), cell);
      if (window == 0 || n - 1 - i < window) expected.push_back(cell);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_TRUE(std::adjacent_find(expected.begin(), expected.end()) == expected.end());
    ASSERT_EQ(visible(cells_, id, node.id, window), expected);
  }

  int pick(size_t n) { return static_cast<int>(random_() % n); }
  SequenceId any_sequence() { return std::next(sequences_.begin(), pick(sequences_.size()))->first; }

  void create() {
    if (sequences_.size() >= 6) return;
    const SequenceId id = cells_.create();
    ASSERT_TRUE(sequences_.emplace(id, NaiveSequence{}).second) << "an id that is in use";
  }
  void fork() {
    if (sequences_.empty() || sequences_.size() >= 6) return;
    const SequenceId source = any_sequence();
    const auto& committed = sequences_[source].committed;
    const int n = pick(committed.size() + 1);
    const SequenceId id = cells_.fork(source, n);
    ASSERT_TRUE(
        sequences_.emplace(id, NaiveSequence{.committed = {committed.begin(), committed.begin() + n}})
            .second);
  }
  void remove() {
    if (sequences_.empty() || pick(3) != 0) return;
    const SequenceId id = any_sequence();
    cells_.remove(id);
    sequences_.erase(id);
    ASSERT_FALSE(cells_.exists(id));
  }
  void extend() {
    if (sequences_.empty()) return;
    const SequenceId id = any_sequence();
    NaiveSequence& sequence = sequences_[id];
    const int parent = pick(sequence.nodes.size() + 1) - 1;
    if (parent < 0) {
      add(id, cells_.extend(id), {.path = sequence.committed, .parent = -1, .at_end = true});
    } else {
      NaiveNode node = sequence.nodes[static_cast<size_t>(parent)];
      const auto made = cells_.extend(id, node.id);
      node.parent = parent;
      add(id, made, node);
    }
  }
  void branch() {
    if (sequences_.empty()) return;
    const SequenceId id = any_sequence();
    const auto& committed = sequences_[id].committed;
    const int n = pick(committed.size() + 1);
    add(id, cells_.branch_at(id, Position{n}),
        {.path = {committed.begin(), committed.begin() + n},
         .parent = -1,
         .at_end = n == static_cast<int>(committed.size())});
  }
  void add(SequenceId id, std::optional<NodeId> made, NaiveNode node) {
    if (!made) {
      ASSERT_EQ(cells_.n_free(), 0);
      ++n_full_;
      return;
    }
    auto& nodes = sequences_[id].nodes;
    ASSERT_EQ(to_int(*made), static_cast<int>(nodes.size()));
    node.id = *made;
    node.path.push_back(next_token_);
    cell_of_[next_token_++] = cells_.cell(id, *made);
    nodes.push_back(node);
  }
  void commit() {
    if (sequences_.empty()) return;
    const SequenceId id = any_sequence();
    NaiveSequence& sequence = sequences_[id];
    std::vector<NodeId> path;
    std::vector<int> committed = sequence.committed;
    if (const int last = pick(sequence.nodes.size() + 1) - 1; last >= 0) {
      const NaiveNode& node = sequence.nodes[static_cast<size_t>(last)];
      if (!node.at_end) return;
      for (int i = last; i >= 0; i = sequence.nodes[static_cast<size_t>(i)].parent) {
        path.insert(path.begin(), sequence.nodes[static_cast<size_t>(i)].id);
      }
      committed = node.path;
    }
    cells_.commit(id, path);
    sequence = {.committed = committed, .nodes = {}};
  }
  void rollback() {
    if (sequences_.empty()) return;
    const SequenceId id = any_sequence();
    cells_.rollback(id);
    sequences_[id].nodes.clear();
  }
  void truncate() {
    if (sequences_.empty() || pick(3) != 0) return;
    const SequenceId id = any_sequence();
    NaiveSequence& sequence = sequences_[id];
    const int n = pick(sequence.committed.size() + 1);
    cells_.truncate(id, n);
    sequence.committed.resize(static_cast<size_t>(n));
    sequence.nodes.clear();
  }

  KvCells cells_;
  std::mt19937 random_;
  std::map<SequenceId, NaiveSequence> sequences_;
  std::map<int, int32_t> cell_of_;
  int next_token_ = 0;
  int n_full_ = 0;
};

TEST(KvCells, RandomOperationsAgreeWithANaiveModel) {
  int n_full = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Naive naive(/*n_cells=*/seed % 2 == 0 ? 24 : 96, seed);
    for (int i = 0; i < 300; ++i) {
      naive.step();
      naive.check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    n_full += naive.n_full();
  }
  EXPECT_GT(n_full, 100) << "the pool must have been full at times for this to mean something";
}

}  // namespace
}  // namespace forerun
