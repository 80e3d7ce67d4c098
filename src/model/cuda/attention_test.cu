#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "model/cuda/attention_problem.h"

namespace forerun::cuda {
namespace {

class AttentionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};

bool same_bits(const Halves& a, const Halves& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(__half)) == 0;
}

Halves row_of(const Problem& problem, const Halves& result, size_t row) {
  const auto from = result.begin() + static_cast<std::ptrdiff_t>(row * problem.row_size());
  return {from, from + static_cast<std::ptrdiff_t>(problem.row_size())};
}

constexpr int kItemChunks[] = {1, kGroup, kAllChunks};
constexpr int kTiles[] = {1, 2, kMostTiles};

void expect_near_reference(const Problem& problem) {
  const std::vector<double> expected = reference(problem);
  for (const int item_chunks : kItemChunks) {
    const Halves got =
        run(problem,
            {.rows = all_rows(problem), .item_chunks = item_chunks, .n_tiles = kMostTiles, .places = 7});
    EXPECT_LT(relative_error(got, expected), 2e-3)
        << ggml_type_name(problem.cache_type) << " item_chunks " << item_chunks << " head_dim "
        << problem.shape.head_dim << " heads " << problem.shape.n_heads << " rows "
        << problem.rows.seen.size();
  }
}

// Rows together and alone, cut in every way, cells in other places.
void expect_row_invariant(const Problem& problem) {
  const Halves together = run(problem, {.rows = all_rows(problem), .item_chunks = 1, .places = 1});
  for (const int item_chunks : kItemChunks) {
    for (const int n_tiles : kTiles) {
      const Way way{
          .rows = all_rows(problem), .item_chunks = item_chunks, .n_tiles = n_tiles, .places = 2};
      EXPECT_TRUE(same_bits(together, run(problem, way)))
          << ggml_type_name(problem.cache_type) << " item_chunks " << item_chunks << " tiles "
          << n_tiles;
    }
  }
  for (const int r : all_rows(problem)) {
    const int item_chunks = kItemChunks[r % 3];
    const Halves alone = run(problem, {.rows = {r}, .item_chunks = item_chunks, .places = 3});
    EXPECT_TRUE(same_bits(row_of(problem, together, static_cast<size_t>(r)), alone))
        << "row " << r << " item_chunks " << item_chunks;
  }
}

constexpr ggml_type kCacheTypes[] = {GGML_TYPE_F16, GGML_TYPE_Q8_0};

TEST_F(AttentionTest, EveryHeadDimNearReference) {
  std::mt19937 random(1);
  for (const ggml_type type : kCacheTypes) {
    for (const int head_dim : {64, 80, 96, 112, 128, 256}) {
      const AttentionShape shape = shape_of(head_dim, 4);
      if (!attention_supports(shape, type)) continue;
      for (const int n : {1, 5, 9, 40}) {
        expect_near_reference(problem_of(random, shape, chain(300, n), type));
      }
    }
  }
}

TEST_F(AttentionTest, EveryNumberOfHeadsNearReference) {
  std::mt19937 random(2);
  for (const int heads_per_kv : {1, 3, 4, 7, 8, 64}) {
    for (const int n : {1, 3, 20}) {
      for (const ggml_type type : kCacheTypes) {
        expect_near_reference(problem_of(random, shape_of(64, heads_per_kv), chain(200, n), type));
      }
    }
  }
}

TEST_F(AttentionTest, TreesAndSequencesNearReference) {
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i) {
    const int window = i % 2 == 0 ? 0 : 1 + static_cast<int>(random() % 500);
    const float soft_cap = i % 3 == 0 ? 0.0f : 5.0f;
    const int head_dim = i % 4 == 0 ? 64 : i % 4 == 1 ? 128 : i % 4 == 2 ? 80 : 256;
    const AttentionShape shape = shape_of(head_dim, 1 + i % 8, soft_cap);
    const TestRows rows = random_rows(random, window, 12);
    for (const ggml_type type : kCacheTypes) {
      if (attention_supports(shape, type)) expect_near_reference(problem_of(random, shape, rows, type));
    }
  }
}

// Caps as Gemma 2's, with scores far below, around and beyond them.
TEST_F(AttentionTest, SoftCapsNearReference) {
  std::mt19937 random(9);
  for (const int head_dim : {128, 256}) {
    for (const float query_scale : {0.1f, 5.0f, 100.0f}) {
      for (const ggml_type type : kCacheTypes) {
        const Problem problem =
            problem_of(random, shape_of(head_dim, 2, 50.0f), chain(700, 5), type, query_scale);
        expect_near_reference(problem);
        expect_row_invariant(problem);
      }
    }
  }
}

TEST_F(AttentionTest, LongContextNearReference) {
  std::mt19937 random(4);
  for (const ggml_type type : kCacheTypes) {
    expect_near_reference(problem_of(random, shape_of(128, 4), chain(20000, 2), type));
  }
  expect_near_reference(problem_of(random, shape_of(64, 2), chain(9000, 3, 4096)));
}

TEST_F(AttentionTest, TreesAndSequencesAreRowInvariant) {
  std::mt19937 random(5);
  for (int i = 0; i < 12; ++i) {
    const int window = i % 2 == 0 ? 0 : 1 + static_cast<int>(random() % 500);
    const float soft_cap = i % 3 == 0 ? 5.0f : 0.0f;
    const int head_dims[] = {64, 80, 96, 112, 128, 256};
    const AttentionShape shape = shape_of(head_dims[i % 6], 1 + i % 8, soft_cap);
    const TestRows rows = random_rows(random, window, 12);
    for (const ggml_type type : kCacheTypes) {
      if (attention_supports(shape, type)) expect_row_invariant(problem_of(random, shape, rows, type));
    }
  }
}

TEST_F(AttentionTest, BordersOfChunksAndGroupsAreRowInvariant) {
  std::mt19937 random(6);
  for (const int length : {1, 127, 128, 129, 511, 512, 513, 2000, 5000}) {
    for (const ggml_type type : kCacheTypes) {
      for (const int n : {1, 6, 20}) {
        expect_row_invariant(
            problem_of(random, shape_of(128, 4), chain(std::max(0, length - n), n), type));
      }
      expect_row_invariant(problem_of(random, shape_of(64, 3), chain(length, 9, 600), type));
    }
  }
}

TEST_F(AttentionTest, PromptIsRowInvariant) {
  std::mt19937 random(7);
  for (const ggml_type type : kCacheTypes) {
    const Problem problem = problem_of(random, shape_of(128, 4), chain(700, 150), type);
    const Halves together =
        run(problem, {.rows = all_rows(problem), .item_chunks = kAllChunks, .n_tiles = kMostTiles});
    for (const int r : {0, 1, 15, 16, 67, 68, 149}) {
      EXPECT_TRUE(
          same_bits(row_of(problem, together, static_cast<size_t>(r)), run(problem, {.rows = {r}})));
    }
  }
}

TEST_F(AttentionTest, GraphGivesTheSame) {
  std::mt19937 random(8);
  const Problem problem = problem_of(random, shape_of(128, 4), chain(3000, 7));
  for (const int item_chunks : kItemChunks) {
    const Way direct{.rows = all_rows(problem), .item_chunks = item_chunks};
    Way graph = direct;
    graph.in_graph = true;
    EXPECT_TRUE(same_bits(run(problem, direct), run(problem, graph)));
  }
}

TEST(AttentionSupportTest, OtherShapesAndCachesAreNotSupported) {
  for (const ggml_type type : kCacheTypes) {
    EXPECT_TRUE(attention_supports(shape_of(128, 128), type));
    EXPECT_FALSE(attention_supports(shape_of(128, 129), type));
    EXPECT_FALSE(attention_supports(shape_of(72, 4), type));
  }
  EXPECT_FALSE(attention_supports(shape_of(128, 4), GGML_TYPE_F32));
  // Blocks of 32 that cross heads, and rows of cells that begin between words.
  EXPECT_TRUE(attention_supports(shape_of(80, 4), GGML_TYPE_F16));
  EXPECT_FALSE(attention_supports(shape_of(80, 4), GGML_TYPE_Q8_0));
  AttentionShape shape = shape_of(96, 4);
  EXPECT_TRUE(attention_supports(shape, GGML_TYPE_Q8_0));
  shape.n_kv_heads = 1;
  EXPECT_TRUE(attention_supports(shape, GGML_TYPE_F16));
  EXPECT_FALSE(attention_supports(shape, GGML_TYPE_Q8_0));
}

}  // namespace
}  // namespace forerun::cuda
