#include "model/cpu/worker_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "model/cpu/op.h"

namespace forerun {
namespace {

// Every share adds one where it belongs, if all of the step before is there.
class CountingOp final : public CpuOp {
 public:
  CountingOp(std::vector<int>& numbers, int step, bool takes_many)
      : numbers_(numbers), step_(step), takes_many_(takes_many) {}

  void run(ggml_tensor*, Worker worker) const override {
    const auto n = static_cast<int64_t>(numbers_.size());
    const auto [first, end] = share_of(worker, n);
    for (int64_t i = first; i < end; ++i) {
      int& mine = numbers_[static_cast<size_t>(i)];
      mine += mine >= step_ - 1 ? 1 : 0;
    }
    if (worker.index == 0 && slow_) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  bool takes_many_shares() const override { return takes_many_; }
  void be_slow() { slow_ = true; }

 private:
  std::vector<int>& numbers_;
  int step_;
  bool takes_many_;
  bool slow_ = false;
};

struct Steps {
  std::vector<int> numbers = std::vector<int>(1000, 0);
  std::vector<CountingOp> ops = {};
  std::vector<CpuStep> steps = {};

  explicit Steps(int n) {
    for (int step = 1; step <= n; ++step) ops.emplace_back(numbers, step, step % 3 != 0);
    for (const CountingOp& op : ops) steps.push_back({.op = &op, .dst = nullptr});
  }
};

TEST(WorkerPool, ComputesEveryShareOfEveryStepOnceAndInOrder) {
  for (const int n_threads : {1, 2, 3, 7}) {
    WorkerPool pool(n_threads, {});
    for (int pass = 0; pass < 50; ++pass) {
      Steps steps(20);
      if (pass % 10 == 0) steps.ops[7].be_slow();
      pool.run(steps.steps);
      EXPECT_EQ(steps.numbers, std::vector<int>(1000, 20)) << n_threads << " threads, pass " << pass;
    }
  }
}

TEST(WorkerPool, HasNothingToDoInAPassWithoutSteps) {
  WorkerPool pool(2, {});
  pool.run({});
  Steps steps(3);
  pool.run(steps.steps);
  EXPECT_EQ(steps.numbers, std::vector<int>(1000, 3));
}

TEST(WorkerPool, SleepsBetweenPassesAndWakes) {
  WorkerPool pool(3, {});
  for (int pass = 0; pass < 5; ++pass) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    Steps steps(5);
    pool.run(steps.steps);
    EXPECT_EQ(steps.numbers, std::vector<int>(1000, 5));
  }
}

class ThrowingOp final : public CpuOp {
 public:
  void run(ggml_tensor*, Worker worker) const override {
    if (worker.index == worker.count - 1) throw std::runtime_error("no");
  }
  bool takes_many_shares() const override { return true; }
};

TEST(WorkerPool, ThrowsWhatAShareThrewAndGoesOn) {
  for (const int n_threads : {1, 2, 3}) {
    WorkerPool pool(n_threads, {});
    for (int pass = 0; pass < 20; ++pass) {
      const ThrowingOp op;
      const CpuStep step{.op = &op, .dst = nullptr};
      EXPECT_THROW(pool.run({&step, 1}), std::runtime_error);
      Steps steps(5);
      pool.run(steps.steps);
      EXPECT_EQ(steps.numbers, std::vector<int>(1000, 5));
    }
  }
}

// One thread of three is in the middle of a share and stays there: the others do all else.
class BlockingOp final : public CpuOp {
 public:
  void run(ggml_tensor*, Worker worker) const override {
    if (worker.index == 0) {
      while (n_done_ < worker.count - 1) std::this_thread::yield();
    } else {
      ++n_done_;
    }
  }
  bool takes_many_shares() const override { return true; }

 private:
  mutable std::atomic<int> n_done_ = 0;
};

TEST(WorkerPool, TakesOverWhatAnotherHasNotBegun) {
  for (const int n_threads : {2, 3}) {
    WorkerPool pool(n_threads, {});
    const BlockingOp op;  // its first share ends when all others have
    const CpuStep step{.op = &op, .dst = nullptr};
    pool.run({&step, 1});
  }
}

}  // namespace
}  // namespace forerun
