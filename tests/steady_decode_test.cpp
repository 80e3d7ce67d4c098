// A steady decode step builds no graph and allocates nothing.
//
// This program counts every allocation by putting itself before the C library's
// malloc; operator new ends there too. ggml's CPU backend makes and frees an empty
// context whenever it computes (ggml_cpu_init): two small allocations per step that are
// not ours to avoid.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

#include "support/engine.h"
#include "support/model_files.h"
#include "support/spread_model.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FORERUN_COUNTS_MALLOC 1

namespace {
std::atomic<int64_t> n_allocations{0};
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  ++n_allocations;
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  ++n_allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  ++n_allocations;
  return __libc_realloc(p, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++n_allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  ++n_allocations;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace forerun {
namespace {

using namespace test;

constexpr int64_t kAllocationsOfGgml = 2;  // per computed graph

class Decoder {
 public:
  explicit Decoder(Executor& executor) : executor_(executor), sequence_(executor.cells().create()) {
    executor.cells().reserve(sequence_, executor.cells().n_cells());
    pass_.rows.resize(1);
  }
  // Reads one token and commits it.
  void step(TokenId token) {
    path_[0] = executor_.cells().extend(sequence_).value();
    pass_.rows[0] = {.sequence = sequence_, .node = path_[0], .token = token, .logits = true};
    sum_ += executor_.forward(pass_).logits(0)[0];
    executor_.cells().commit(sequence_, path_);
  }
  float sum() const { return sum_; }

 private:
  Executor& executor_;
  SequenceId sequence_;
  Pass pass_;
  NodeId path_[1]{};
  float sum_ = 0;  // so that no result goes unread
};

constexpr int kDecodedSteps = 100;  // within the first 256 cells

// How much is allocated in so many steps; nothing where nobody counts.
int64_t n_allocations_of_steps(const std::string& name, const std::shared_ptr<const Model>& model) {
  const auto executor = make_executor(model);
  Decoder decoder(*executor);
  constexpr int kWarmUp = 5;
  for (int i = 0; i < kWarmUp; ++i) decoder.step(TokenId{i});
  const int n_graphs = executor->n_graphs_built();
  int64_t n = 0;
#ifdef FORERUN_COUNTS_MALLOC
  EXPECT_GT(n_allocations, 0) << "allocations are not counted";
  n -= n_allocations;
#endif
  for (int i = 0; i < kDecodedSteps; ++i) decoder.step(TokenId{i});
#ifdef FORERUN_COUNTS_MALLOC
  n += n_allocations;
#endif
  EXPECT_EQ(executor->n_graphs_built(), n_graphs) << name;
  EXPECT_TRUE(std::isfinite(decoder.sum()));
  return n;
}

TEST(SteadyDecode, BuildsNoGraphAndAllocatesNothing) {
  for (const char* name :
       {"tiny-llama", "tiny-llama-q4_k", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3", "tiny-gemma4-e"}) {
    EXPECT_LE(n_allocations_of_steps(name, load_model(model_file(name))),
              kAllocationsOfGgml * kDecodedSteps)
        << name;
  }
}

TEST(SteadyDecode, PartsOfAModelAllocateNoMoreThanAWhole) {
  for (const char* name : {"tiny-gemma3", "tiny-gemma4", "tiny-qwen3moe"}) {
    const auto whole = load_model(model_file(name));
    const int64_t most = n_allocations_of_steps(name, whole);
    for (const Placement& placement : some_placements(whole->config())) {
      EXPECT_LE(n_allocations_of_steps(name, load_spread(model_file(name), placement)), most)
          << name << ": " << placement.where();
    }
  }
}

TEST(SteadyDecode, OneGraphServesManyCells) {
  const auto model = load_model(model_file("tiny-llama"));
  const auto executor = make_executor(model, KvType::kF16, /*n_cells=*/2048);
  Decoder decoder(*executor);
  for (int i = 0; i < 1000; ++i) decoder.step(TokenId{i % 200});
  EXPECT_EQ(executor->n_graphs_built(), 1);
  for (int i = 0; i < 100; ++i) decoder.step(TokenId{i % 200});
  EXPECT_EQ(executor->n_graphs_built(), 2) << "as many again";
}

}  // namespace
}  // namespace forerun
