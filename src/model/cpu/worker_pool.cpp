#include "model/cpu/worker_pool.h"

#include <system_error>
#include <utility>

#include "core/cpu_topology.h"
#include "core/error.h"

namespace forerun {
namespace {

using namespace std::chrono_literals;

constexpr int kShares = 4;  // of a step, for each thread

// How long a thread looks for what it waits for before it takes over shares of others, and before
// it sleeps. To wake one takes some 50 us. Between passes tokens are chosen and drafted.
constexpr auto kAwakeWithoutHelping = 5us;
constexpr auto kAwakeInStep = 50us;
constexpr auto kAwakeBetweenPasses = 500us;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most
#endif
}

constexpr uint64_t taken_of(uint32_t step, uint32_t n) {
  return uint64_t{step} << 32 | n;
}

}  // namespace

WorkerPool::WorkerPool(int n_threads, std::span<const int> cpus)
    : n_threads_(n_threads), shares_(static_cast<size_t>(n_threads)) {
  for (Shares& shares : shares_) shares.taken = taken_of(open_ - 1, kShares);
  if (!cpus.empty()) pin_current_thread(cpus.front());
  try {
    for (int thread = 1; thread < n_threads; ++thread) {
      const int cpu = cpus.empty() ? -1 : cpus[static_cast<size_t>(thread)];
      threads_.emplace_back([this, thread, cpu] {
        unpin_current_thread();  // what the caller is bound to
        if (cpu >= 0) pin_current_thread(cpu);
        work(thread);
      });
    }
  } catch (const std::system_error&) {
    stop();
    fail(ErrorCode::kOutOfMemory, "the system does not allow {} threads: ask for fewer with -t",
         n_threads);
  }
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() {
  is_stopping_ = true;
  ++end_;  // of a step that nobody computes
  end_.notify_all();
}

void WorkerPool::run(std::span<const CpuStep> steps) {
  if (n_threads_ == 1) {
    for (const CpuStep& step : steps) step.op->run(step.dst, {.index = 0, .count = 1});
    return;
  }
  steps_ = steps;
  first_ = open_.load(std::memory_order_relaxed);
  const StepNumber end = first_ + static_cast<StepNumber>(steps.size());
  // A wake-up looks whether somebody sleeps, which must not be before the store.
  end_.store(end, std::memory_order_seq_cst);
  end_.notify_all();
  for (StepNumber step = first_; step != end; step = open_.load(std::memory_order_acquire))
    help(0, step);
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void WorkerPool::work(int thread) {
  for (;;) {
    const StepNumber step = open_.load(std::memory_order_acquire);
    if (!exists(step)) wait(end_, step, thread, kAwakeBetweenPasses, [] {});
    if (is_stopping_.load(std::memory_order_acquire)) return;
    help(thread, step);
  }
}

// Computes shares of a step until it has ended.
void WorkerPool::help(int thread, StepNumber step) {
  add_done(compute_shares(thread, step) + compute_others(thread, step, Helped::kAsleep), step);
  wait(open_, step, thread, kAwakeInStep,
       [&] { add_done(compute_others(thread, step, Helped::kAll), step); });
}

int WorkerPool::compute_others(int thread, StepNumber step, Helped helped) {
  if (helped == Helped::kAsleep && n_asleep_.load(std::memory_order_relaxed) == 0) return 0;
  int n = 0;
  for (int i = 1; i < n_threads_; ++i) {
    const int owner = (thread + i) % n_threads_;
    const Shares& shares = shares_[static_cast<size_t>(owner)];
    if (helped == Helped::kAll || shares.is_asleep.load(std::memory_order_relaxed))
      n += compute_shares(owner, step);
  }
  return n;
}

int WorkerPool::compute_shares(int owner, StepNumber step) {
  int n = 0;
  for (int share; take(shares_[static_cast<size_t>(owner)], step, share); ++n)
    compute_share(owner, share, step);
  return n;
}

void WorkerPool::compute_share(int owner, int share, StepNumber step) {
  const CpuStep& computed = steps_[step - first_];
  try {
    if (computed.op->takes_many_shares()) {
      computed.op->run(computed.dst, {.index = owner * kShares + share, .count = n_threads_ * kShares});
    } else if (share == 0) {
      computed.op->run(computed.dst, {.index = owner, .count = n_threads_});
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

// A step that has ended has no shares left, so that a thread which comes late takes none.
bool WorkerPool::take(Shares& shares, StepNumber step, int& share) {
  uint64_t taken = shares.taken.load(std::memory_order_acquire);
  for (;;) {
    const auto taken_step = static_cast<StepNumber>(taken >> 32);
    if (static_cast<int32_t>(taken_step - step) > 0) return false;
    const uint32_t n = taken_step == step ? static_cast<uint32_t>(taken) : 0;
    if (n == kShares) return false;
    if (shares.taken.compare_exchange_weak(taken, taken_of(step, n + 1), std::memory_order_acq_rel)) {
      share = static_cast<int>(n);
      return true;
    }
  }
}

void WorkerPool::add_done(int n, StepNumber step) {
  if (n == 0 || n_done_.fetch_add(n, std::memory_order_acq_rel) + n < n_threads_ * kShares) return;
  n_done_.store(0, std::memory_order_relaxed);
  open_.store(step + 1, std::memory_order_seq_cst);
  open_.notify_all();
}

template <typename F>
void WorkerPool::wait(std::atomic<StepNumber>& number, StepNumber seen, int thread,
                      Clock::duration awake, F meanwhile) {
  constexpr int kLooksPerTime = 16;
  const auto has_changed_by = [&](Clock::time_point end) {
    do {
      for (int i = 0; i < kLooksPerTime; ++i) {
        if (number.load(std::memory_order_acquire) != seen) return true;
        relax();
      }
    } while (Clock::now() < end);
    return false;
  };
  if (number.load(std::memory_order_acquire) != seen) return;
  const auto start = Clock::now();
  if (has_changed_by(start + kAwakeWithoutHelping)) return;
  meanwhile();
  if (has_changed_by(start + awake)) return;
  std::atomic<bool>& is_asleep = shares_[static_cast<size_t>(thread)].is_asleep;
  is_asleep.store(true, std::memory_order_relaxed);
  n_asleep_.fetch_add(1, std::memory_order_relaxed);
  number.wait(seen, std::memory_order_acquire);
  n_asleep_.fetch_sub(1, std::memory_order_relaxed);
  is_asleep.store(false, std::memory_order_relaxed);
}

}  // namespace forerun
