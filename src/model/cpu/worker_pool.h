// The threads that compute a pass on CPUs.
//
// Every step is cut into shares, some for each thread. A thread computes its own, one after the
// other as a stream; then, rather than wait for a thread that the system gave no time to (others
// need the CPUs too, and some CPUs have slow cores), it takes over what that one has not begun. A
// step ends when its shares are done, whoever did them. What still has to be waited for is a share
// that somebody is in the middle of: at first by looking, which is quick, then asleep, so that the
// CPU is free for the thread that is waited for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "model/cpu/op.h"

namespace forerun {

class WorkerPool {
 public:
  // cpus: one to bind each thread to, or none. The caller becomes the first of the threads. Throws Error
  // where the system allows no more threads.
  WorkerPool(int n_threads, std::span<const int> cpus);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Computes the steps one after the other, with the caller's help. Not from two threads at once.
  // Throws what a share threw, once all are done with the rest.
  void run(std::span<const CpuStep> steps);

 private:
  using Clock = std::chrono::steady_clock;
  using StepNumber = uint32_t;  // of all steps ever; wraps around

  // The shares of one thread that are taken, by it or by others.
  struct alignas(64) Shares {
    std::atomic<uint64_t> taken{};              // the step's number, then how many
    alignas(64) std::atomic<bool> is_asleep{};  // the thread: it will take none soon
  };

  // Whether there is such a step to compute yet.
  bool exists(StepNumber step) const {
    return static_cast<int32_t>(end_.load(std::memory_order_acquire) - step) > 0;
  }
  void work(int thread);
  void stop();
  void help(int thread, StepNumber step);
  enum class Helped { kAsleep, kAll };
  // Computes what is left of the shares of others, or of one thread; how many.
  int compute_others(int thread, StepNumber step, Helped helped);
  int compute_shares(int owner, StepNumber step);
  void compute_share(int owner, int share, StepNumber step);
  static bool take(Shares& shares, StepNumber step, int& share);
  void add_done(int n, StepNumber step);
  // Returns when `number` is no longer `seen`.
  template <typename F>
  void wait(std::atomic<StepNumber>& number, StepNumber seen, int thread, Clock::duration awake,
            F meanwhile);

  const int n_threads_;
  std::vector<Shares> shares_;                    // by thread
  alignas(64) std::atomic<StepNumber> open_ = 0;  // the step that is computed
  alignas(64) std::atomic<int> n_done_ = 0;       // shares of it
  alignas(64) std::atomic<StepNumber> end_ = 0;   // steps before it are there to compute
  alignas(64) std::atomic<int> n_asleep_ = 0;     // threads
  std::atomic<bool> is_stopping_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;      // of a share; guarded by the mutex
  std::span<const CpuStep> steps_;  // from the number first_ on; for those who took a share of one
  StepNumber first_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace forerun
