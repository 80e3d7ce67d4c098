// Mixtures of experts against double precision, and bit for bit against every row alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "model/cuda/device_array.h"
#include "model/cuda/experts.h"
#include "model/cuda/experts_fixtures.h"

namespace forerun::cuda {
namespace {

class ExpertsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};
class ExpertTypesTest : public testing::TestWithParam<ggml_type> {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};

void expect_same_rows(const TestMixture& mixture, int n_rows, const std::vector<int>& chosen,
                      const Floats& alone) {
  const auto n = static_cast<size_t>(mixture.size.n_embd);
  const Floats together = mixture.run(chosen);
  int n_different = 0;
  for (size_t row = 0; row < chosen.size(); ++row) {
    n_different +=
        same_bits(rows_of(together, {static_cast<int>(row)}, n), rows_of(alone, {chosen[row]}, n)) ? 0
                                                                                                   : 1;
  }
  EXPECT_EQ(n_different, 0) << "of " << chosen.size() << " rows of " << n_rows;
}

// Each row alone is what double precision says; in passes of any others it has the same bits.
void check_mixture(const MixtureSize& size, int n_rows, const std::vector<int>& pass_sizes) {
  SCOPED_TRACE(size.name());
  Random random(static_cast<unsigned>(size.n_experts * 31 + size.n_used));
  const TestMixture mixture(size, n_rows, random);
  const auto n = static_cast<size_t>(size.n_embd);
  Floats alone;
  RelativeError error;
  for (int row = 0; row < n_rows; ++row) {
    const Floats y = mixture.run({row});
    alone.insert(alone.end(), y.begin(), y.end());
    if (row % 17 == 0) error.add(&alone[static_cast<size_t>(row) * n], mixture.reference(row));
  }
  EXPECT_LT(error.value(), 2e-3);
  for (const int n_chosen : pass_sizes) {
    std::vector<int> chosen(static_cast<size_t>(n_rows));
    std::iota(chosen.begin(), chosen.end(), 0);
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(static_cast<size_t>(n_chosen));
    expect_same_rows(mixture, n_rows, chosen, alone);
  }
}

TEST_P(ExpertTypesTest, RowsDoNotDependOnOthers) {
  std::vector<int> all(64);
  std::iota(all.begin(), all.end(), 1);
  check_mixture({.type = GetParam(), .down_type = GetParam(), .n_experts = 8, .n_used = 2}, 64, all);
}

TEST_P(ExpertTypesTest, ManyRowsHaveTheBitsOfFew) {
  check_mixture({.type = GetParam(),
                 .down_type = GetParam(),
                 .n_embd = 1024,
                 .n_ff = 512,
                 .n_experts = 32,
                 .n_used = 4,
                 .has_shared = true},
                300, {65, 128, 129, 200, 256, 300});
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertTypesTest, testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

TEST_F(ExpertsTest, OfAllSizes) {
  const std::vector<int> few = {2, 3, 7, 8, 9, 16, 17, 24, 31, 32, 33, 50, 63, 64};
  for (const int n_experts : {4, 32, 128}) {
    for (const int n_used : {1, 2, 4, 8}) {
      if (n_used > n_experts) continue;
      for (const bool has_shared : {false, true}) {
        check_mixture({.type = GGML_TYPE_Q8_0,
                       .down_type = GGML_TYPE_F16,
                       .n_experts = n_experts,
                       .n_used = n_used,
                       .has_shared = has_shared},
                      64, few);
      }
    }
  }
}

// Gates and ups of different types, and sizes that fill neither stages nor tiles.
TEST_F(ExpertsTest, OfOddSizes) {
  const std::vector<int> few = {2, 8, 16, 17, 40};
  check_mixture({.type = GGML_TYPE_F16,
                 .up_type = GGML_TYPE_Q8_0,
                 .down_type = GGML_TYPE_BF16,
                 .n_embd = 160,
                 .n_ff = 48},
                40, few);
  check_mixture({.type = GGML_TYPE_F16, .down_type = GGML_TYPE_F16, .n_embd = 1000, .n_ff = 300}, 40,
                few);
  check_mixture({.type = GGML_TYPE_Q4_K,
                 .down_type = GGML_TYPE_Q6_K,
                 .n_embd = 2048,
                 .n_ff = 768,
                 .n_experts = 16,
                 .n_used = 8},
                40, few);
  check_mixture({.type = GGML_TYPE_Q4_0, .down_type = GGML_TYPE_Q8_0, .n_embd = 1024, .n_ff = 3584}, 40,
                few);
}

// All rows choose the same experts, which have more of them than an item has columns, and the others
// none.
TEST_F(ExpertsTest, AllRowsChooseTheSame) {
  check_mixture({.type = GGML_TYPE_Q4_0,
                 .down_type = GGML_TYPE_Q8_0,
                 .n_experts = 128,
                 .n_used = 8,
                 .all_choose_same = true},
                200, {1, 5, 16, 17, 64, 100, 200});
}

// Passes one behind the other overlap; replayed from a graph, with other choices each time.
TEST_F(ExpertsTest, InAGraph) {
  for (const int n_rows : {1, 6, 40}) {
    Random random(9);
    const TestMixture mixture({.type = GGML_TYPE_Q4_K,
                               .down_type = GGML_TYPE_Q6_K,
                               .n_embd = 512,
                               .n_ff = 256,
                               .n_experts = 32,
                               .n_used = 4},
                              4 * n_rows, random);
    const auto rows_from = [&](int part) {
      std::vector<int> rows(static_cast<size_t>(n_rows));
      std::iota(rows.begin(), rows.end(), part * n_rows);
      return rows;
    };
    std::vector<Floats> expected;  // kernels are loaded when they are first launched, not while captured
    for (int part = 0; part < 4; ++part) expected.push_back(mixture.run(rows_from(part)));
    MixturePass first(mixture, n_rows), second(mixture, n_rows);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    first.launch(stream);
    second.launch(stream);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    for (int replay = 0; replay < 3; ++replay) {
      first.set_rows(rows_from(replay));
      second.set_rows(rows_from(replay + 1));
      check(cudaGraphLaunch(executable, stream));
      check(cudaStreamSynchronize(stream));
      EXPECT_TRUE(same_bits(first.result(), expected[static_cast<size_t>(replay)]));
      EXPECT_TRUE(same_bits(second.result(), expected[static_cast<size_t>(replay) + 1]));
    }
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  }
}

// Needs no device.
TEST(ExpertsShapeTest, ItemsHaveRoomForAllRoutes) {
  Random random(1);
  for (const int n_experts : {1, 4, 32, 60, 128, 1024}) {
    for (const int n_used : {1, 2, 4, 8, 60}) {
      if (n_used > n_experts) continue;
      for (const int n_rows : {1, 2, 3, 5, 8, 16, 17, 33, 64, 65, 100, 512}) {
        const ExpertsShape shape{.n_rows = n_rows, .n_used = n_used, .n_experts = n_experts};
        if (!shape.is_gathered()) ASSERT_GE(shape.width(), n_rows);
        ASSERT_EQ(shape.width(), padded(shape.width()));
        // Choices as uneven as they may be, and as even.
        for (const int n_favoured : {n_used, std::min(n_experts, 2 * n_used), n_experts}) {
          std::vector<int> n_of_expert(static_cast<size_t>(n_experts));
          for (int row = 0; row < n_rows; ++row) {
            std::set<int> chosen;
            while (static_cast<int>(chosen.size()) < n_used)
              chosen.insert(static_cast<int>(random() % static_cast<unsigned>(n_favoured)));
            for (const int expert : chosen) ++n_of_expert[static_cast<size_t>(expert)];
          }
          int n_items = 0;
          for (const int n : n_of_expert) n_items += (n + shape.width() - 1) / shape.width();
          ASSERT_LE(n_items, shape.most_items()) << n_rows << " rows, " << n_used << " of " << n_experts;
        }
      }
    }
  }
}

// Every run has a stage, and few groups of runs touch a tile.
TEST(ExpertsShapeTest, NoRunIsEmpty) {
  for (const ggml_type type : kTypes) {
    for (const int64_t n_in : {48, 256, 768, 2048, 4096, 14336}) {
      for (const int64_t n_out : {1, 48, 768, 2048, 14336}) {
        for (const int n_used : {1, 2, 6, 8, 60, 64}) {
          const ExpertMatrices matrices{
              .one = matrix_of(*format_of(type), n_in, n_out), .n = 2, .n_used = n_used};
          const Cut cut = matrices.cut();
          ASSERT_GE(cut.n_runs, 1);
          for (int run = 0; run < cut.n_runs; ++run) ASSERT_LT(cut.first(run), cut.first(run + 1));
          for (int tile = 0; tile < cut.n_tiles; ++tile)
            ASSERT_LE(cut.runs(tile * cut.tile_rows).n_groups(), Cut::kMostGroups);
        }
      }
    }
  }
}

}  // namespace
}  // namespace forerun::cuda
