#include "layers/idle_blocks.h"

#include <gtest/gtest.h>

#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::WrittenText;

class IdleBlocksTest : public test::PlantedTest {
 protected:
  static constexpr double kChoosing = 100;  // seconds; a plain pass takes 26
  static TimeShare no_limit() { return TimeShare(1.0); }
};

TEST_F(IdleBlocksTest, FindsBlocksThatDoNothing) {
  const WrittenText text(*executor_, 1.0f, 60);
  const TextBlockStates states(*executor_, text, text.text().size(), 4);
  EXPECT_EQ(without_idle_blocks(states, costs_, 60), test::without_planted());
}

TEST_F(IdleBlocksTest, PromisesMuchOnceWhereMuchCanGo) {
  const WrittenText text(*executor_, 1.0f, 60);
  const int n_free = executor_->cells().n_free();
  IdleBlockCheck idle_blocks(*executor_, costs_);
  TimeShare time = no_limit();
  EXPECT_TRUE(idle_blocks.promises_much(text, kChoosing, time));
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, time)) << "what it knows was said";
  EXPECT_EQ(executor_->cells().n_free(), n_free);
}

TEST_F(IdleBlocksTest, PromisesNothingWhereDraftsDoNotPay) {
  const WrittenText text(*executor_, 1.0f, 60);
  Calibration every_row = test::planted_costs();  // costs a pass
  every_row.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                               {.n_rows = 64, .seconds = 64 * 26, .seconds_per_token = 0}});
  const PassCosts dear(every_row);
  IdleBlockCheck idle_blocks(*executor_, dear);
  TimeShare time = no_limit();
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, time));
}

TEST_F(IdleBlocksTest, WaitsForAnAnswerThatPaysTheChoiceBack) {
  WrittenText text(*executor_, 1.0f, 60);
  IdleBlockCheck idle_blocks(*executor_, costs_);
  TimeShare time = no_limit();
  text.set_n_left(2);
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, time));
  EXPECT_FALSE(idle_blocks.is_done()) << "a longer answer may come";
  const int64_t n_passes = executor_->n_passes();
  text.set_n_left(1000);
  EXPECT_FALSE(idle_blocks.promises_much(text, 1000 * kChoosing, time));
  EXPECT_TRUE(idle_blocks.promises_much(text, kChoosing, time));
  EXPECT_TRUE(idle_blocks.is_done());
  EXPECT_EQ(executor_->n_passes(), n_passes) << "what it saw is still known";
}

TEST_F(IdleBlocksTest, WaitsForItsTimeAndForText) {
  IdleBlockCheck idle_blocks(*executor_, costs_);
  const WrittenText text(*executor_, 1.0f, 60);
  const int64_t before = executor_->n_passes();
  TimeShare none(0.0);
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, none));
  TimeShare time = no_limit();
  const WrittenText short_text(*executor_, 1.0f, 1);
  const int64_t written = executor_->n_passes();
  EXPECT_FALSE(idle_blocks.promises_much(short_text, kChoosing, time));
  EXPECT_EQ(executor_->n_passes(), written);
  EXPECT_EQ(written, before + 1);
  EXPECT_TRUE(idle_blocks.promises_much(text, kChoosing, time)) << "later";
}

TEST_F(IdleBlocksTest, WaitsForAFewStepsAtMost) {
  IdleBlockCheck idle_blocks(*executor_, costs_);
  const WrittenText text(*executor_, 1.0f, 60);
  constexpr double kPass = 1;
  TimeShare none(0.0), little(1e-9);
  for (int i = 0; i < 20; ++i) little.begin_step(i == 0, kPass);
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, little));
  for (int i = 0; i < 20; ++i) {
    little.begin_step(i == 0, kPass);
    none.begin_step(i == 0, kPass);
    none.begin_step(i == 0, kPass);
  }
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, none)) << "no time is to be used";
  EXPECT_TRUE(idle_blocks.promises_much(text, kChoosing, little));
}

TEST_F(IdleBlocksTest, AFullCacheIsNoError) {
  const WrittenText text(*executor_, 1.0f, 60);
  const SequenceId other = executor_->cells().create();
  while (executor_->cells().n_free() > 2) executor_->cells().extend(other);
  IdleBlockCheck idle_blocks(*executor_, costs_);
  TimeShare time = no_limit();
  EXPECT_FALSE(idle_blocks.promises_much(text, kChoosing, time));
}

}  // namespace
}  // namespace forerun
