#include "model/cpu/chunk_shares.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace forerun {
namespace {

// Every chunk of every head is attended to once for every row; a row's partial results of a
// head are in the order of positions, without gaps, and all but the first are of one chunk.
TEST(ChunkShares, CoverEverythingOnceAndInOrder) {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int trial = 0; trial < 500; ++trial) {
    const int n_rows = pick(1, 8), n_heads = pick(1, 9), n_workers = pick(1, 20);
    const int first = pick(0, 600);
    std::vector<VisibleCells> rows(static_cast<size_t>(n_rows));
    for (VisibleCells& row : rows) {
      row = {.shared = nullptr,
             .own = nullptr,
             .n_shared = 0,
             .first = first,
             .end = first + pick(1, 3000)};
    }
    const Chunks all = seen_chunks(rows);
    const ChunkShares shares(rows, n_heads, n_workers);
    std::map<std::pair<int64_t, int>, std::map<int64_t, Chunks>> found;  // by row and head
    for (int worker = 0; worker < n_workers; ++worker) {
      shares.for_runs(worker, [&](const ChunkShares::Run& run) {
        for (int64_t row = run.rows.first; row < run.rows.end; ++row) {
          const bool is_new = found[{row, run.kv_head}].emplace(run.partial, run.chunks).second;
          EXPECT_TRUE(is_new) << "partial result " << run.partial << " twice";
        }
      });
    }
    ASSERT_EQ(found.size(), rows.size() * static_cast<size_t>(n_heads));
    for (const auto& [row_and_head, partials] : found) {
      const auto& [row, head] = row_and_head;
      ASSERT_EQ(static_cast<int>(partials.size()), shares.n_partials(row, head));
      int next = all.first;
      for (const auto& [partial, chunks] : partials) {
        EXPECT_EQ(chunks.first, next);
        EXPECT_TRUE(partial == 0 || chunks.end == chunks.first + 1);
        next = chunks.end;
      }
      EXPECT_EQ(partials.rbegin()->first, shares.n_partials(row, head) - 1);
      EXPECT_EQ(next, all.end);
    }
  }
}

TEST(ChunkShares, OneWorkerMergesAll) {
  const std::vector<VisibleCells> rows(3, {nullptr, nullptr, 0, 0, 4000});
  const ChunkShares shares(rows, 2, 1);
  EXPECT_EQ(shares.n_partials(2, 1), 1);
}

}  // namespace
}  // namespace forerun
