// A context saved to a file and restored elsewhere goes on as if nothing had happened;
// any damage to the file is noticed before the cache changes.

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/engine.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write_file(const std::filesystem::path& path, const std::string& data) {
  std::ofstream(path, std::ios::binary) << data;
}

class KvFile : public ::testing::Test {
 protected:
  explicit KvFile(const std::string& model = "tiny-llama") : model_(load_model(model_file(model))) {}

  // A sequence whose cells are neither contiguous nor in order.
  void SetUp() override {
    executor_ = make_executor(model_);
    const SequenceId hole = executor_->cells().create();
    read_and_commit(*executor_, hole, random_tokens(*model_, 20, 1));
    sequence_ = executor_->cells().create();
    tokens_ = random_tokens(*model_, 40, 2);
    read_and_commit(*executor_, sequence_, std::span(tokens_).first(15));
    executor_->cells().remove(hole);
    read_and_commit(*executor_, sequence_, std::span(tokens_).subspan(15));
    executor_->save(sequence_, tokens_, path_);
  }

  std::shared_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  SequenceId sequence_{};
  std::vector<TokenId> tokens_;
  TempDir folder_;
  std::filesystem::path path_ = folder_.file("context.bin");
};

// Layers without cells of their own, cells of two sizes, and cells that hold keys and values once.
class KvFileOfCells : public KvFile, public ::testing::WithParamInterface<const char*> {
 protected:
  KvFileOfCells() : KvFile(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Of, KvFileOfCells,
                         ::testing::Values("tiny-llama", "tiny-gemma4-e", "tiny-deepseek2"));

TEST_P(KvFileOfCells, GoesOnWhereItWas) {
  const auto more = random_tokens(*model_, 5, 3);
  const auto expected = read_and_commit(*executor_, sequence_, more);

  const auto other = make_executor(model_);
  const auto restored = other->restore(path_);
  ASSERT_TRUE(restored.has_value());
  EXPECT_EQ(restored->tokens, tokens_);
  EXPECT_EQ(other->cells().n_committed(restored->sequence), static_cast<int>(tokens_.size()));
  // Its cells now lie in order, so sums over them differ in their last bits.
  EXPECT_LE(max_difference(read_and_commit(*other, restored->sequence, more), expected), 0.05);
}

TEST_F(KvFile, DoesNotFit) {
  const auto small = make_executor(model_, KvType::kF16, 256);
  const SequenceId other = small->cells().create();
  read_and_commit(*small, other, random_tokens(*model_, 128, 4));
  read_and_commit(*small, other, random_tokens(*model_, 100, 4));
  EXPECT_FALSE(small->restore(path_).has_value());
  EXPECT_EQ(small->cells().n_free(), 256 - 228);
}

TEST_F(KvFile, RefusesWhatIsNotItsOwn) {
  const auto expect_refused = [&](Executor& executor) {
    EXPECT_THROW(executor.restore(path_), Error);
    EXPECT_EQ(executor.cells().n_free(), executor.cells().n_cells());
  };
  expect_refused(*make_executor(load_model(model_file("tiny-llama-f32"))));
  expect_refused(*make_executor(model_, KvType::kF32));
  expect_refused(*make_executor(load_model(model_file("tiny-llama-h64"))));
  EXPECT_THROW(executor_->restore(folder_.file("missing")), Error);
  EXPECT_THROW(executor_->save(sequence_, tokens_, "/nonexistent/context.bin"), Error);
}

TEST_F(KvFile, NoticesDamage) {
  const std::string whole = read_file(path_);
  const auto other = make_executor(model_);
  const auto expect_refused = [&](const std::string& data, const std::string& what) {
    write_file(path_, data);
    EXPECT_THROW(other->restore(path_), Error) << what;
    EXPECT_EQ(other->cells().n_free(), other->cells().n_cells()) << what;
  };
  std::mt19937 random(5);
  for (size_t position = 0; position < 64; ++position) {
    std::string damaged = whole;
    damaged[position] = static_cast<char>(damaged[position] ^ 0x41);
    expect_refused(damaged, "byte " + std::to_string(position));
  }
  for (int trial = 0; trial < 100; ++trial) {
    std::string damaged = whole;
    damaged[random() % whole.size()] ^= static_cast<char>(1 << random() % 8);
    expect_refused(damaged, "trial " + std::to_string(trial));
    expect_refused(whole.substr(0, random() % whole.size()), "truncated");
  }
  expect_refused(whole + "x", "one byte too many");
}

TEST_F(KvFile, ReplacesTheFileInOneStep) {
  const std::string before = read_file(path_);
  executor_->save(sequence_, tokens_, path_);
  EXPECT_EQ(read_file(path_), before);
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".part"));
}

}  // namespace
}  // namespace forerun
