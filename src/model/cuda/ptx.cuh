// The PTX instructions that CUDA C++ has no words for, as functions. Those for Hopper need sm_90 or
// later.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace forerun::cuda::ptx {

__device__ __forceinline__ uint32_t address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// --- mbarriers, in shared memory: copies and threads arrive on one, threads wait for it ---

__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t n_arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(barrier)), "r"(n_arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
  asm volatile(
      "{\n"
      ".reg .b64 state;\n"
      "mbarrier.arrive.shared.b64 state, [%0];\n"
      "}\n" ::"r"(address(barrier))
      : "memory");
}
// Waits until the phase of this parity is over.
__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
  uint32_t is_over = 0;
  while (!is_over) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(  // sleeps a while before it says no
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared.b64 over, [%1], %2;\n"
        "selp.b32 %0, 1, 0, over;\n"
        "}\n"
        : "=r"(is_over)
        : "r"(address(barrier)), "r"(parity)
        : "memory");
#else
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.test_wait.parity.shared.b64 over, [%1], %2;\n"
        "selp.b32 %0, 1, 0, over;\n"
        "}\n"
        : "=r"(is_over)
        : "r"(address(barrier)), "r"(parity)
        : "memory");
#endif
  }
}
// Hopper: barriers that one thread has made become known to the copy engine.
__device__ __forceinline__ void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Hopper: arrives, and the phase lasts until so many bytes have come as well.
__device__ __forceinline__ void barrier_expect(uint64_t* barrier, uint32_t n_bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)),
               "r"(n_bytes)
               : "memory");
}

// Waits for n threads of a block that say the same number, 1 to 15, which is not __syncthreads()'s.
__device__ __forceinline__ void sync_threads(int number, int n) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(n) : "memory");
}

// --- copies from global to shared memory ---

// 16 bytes, by the calling thread.
__device__ __forceinline__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to)), "l"(from) : "memory");
}
// The same, or zeros unless `valid`.
__device__ __forceinline__ void copy_16(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_8(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_8(void* to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address(to)), "l"(from),
               "r"(valid ? 8 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_4(void* to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address(to)), "l"(from),
               "r"(valid ? 4 : 0)
               : "memory");
}
template <int kBytes>
__device__ __forceinline__ void copy(void* to, const void* from, bool valid) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 4) copy_4(to, from, valid);
  if constexpr (kBytes == 8) copy_8(to, from, valid);
  if constexpr (kBytes == 16) copy_16(to, from, valid);
}
// Asks for a line of memory, so that it is in L2 when it is read.
__device__ __forceinline__ void prefetch(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// Arrives once all copies of the calling thread so far are there.
__device__ __forceinline__ void barrier_arrive_after_copies(uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address(barrier)) : "memory");
}

// Hopper's copy engine: any multiple of 16 bytes, reported to a barrier.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, uint32_t n_bytes,
                                          uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(from), "r"(n_bytes), "r"(address(barrier))
      : "memory");
}
// The same for what is read once: it makes room in L2 first.
__device__ __forceinline__ uint64_t evict_first() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void copy_bulk(void* to, const void* from, uint32_t n_bytes,
                                          uint64_t* barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(address(to)),
      "l"(from), "r"(n_bytes), "r"(address(barrier)), "l"(policy)
      : "memory");
}

// From shared to global memory. What threads have written to shared memory becomes known to the copy
// engine; copies are begun, and all since the last time made one batch; the thread waits until its
// batches have been read, or are there.
__device__ __forceinline__ void shared_writes_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void copy_bulk_out(void* to, const void* from, uint32_t n_bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(address(from)), "r"(n_bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies_out() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void wait_for_reads_of_copies_out() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ __forceinline__ void wait_for_copies_out() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// --- programmatic dependent launch: a kernel starts before the previous one has ended ---
//
// Before Hopper there is none, and these do nothing.

// The next kernel may start once all blocks have said so.
__device__ __forceinline__ void launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// From here on what earlier kernels wrote may be read, and what they read be written.
__device__ __forceinline__ void wait_dependencies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// --- clusters of blocks (compute capability 9.0) ---

__device__ __forceinline__ void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
#endif
}
// What block `rank` of the cluster has at the place of `mine`.
__device__ __forceinline__ float load_from_block(const float* mine, uint32_t rank) {
  float value = 0.0f;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 place;\n"
      "mapa.shared::cluster.u32 place, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [place];\n"
      "}\n"
      : "=f"(value)
      : "r"(address(mine)), "r"(rank)
      : "memory");
#endif
  return value;
}

// --- bits ---

// (v & mask) | high in one instruction; the compiler makes two of it.
__device__ __forceinline__ uint32_t and_or(uint32_t v, uint32_t mask, uint32_t high) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(v), "r"(mask), "r"(high));
  return result;
}
// Four of the eight bytes of low and high, one per nibble of `which`: bits 0 to 2 choose the byte; bit 3
// asks for its sign in all bits instead, zero for bytes below 128.
__device__ __forceinline__ uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t which) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(which));
  return result;
}

// --- tensor cores: c[16][8] += a[16][16] b[16][8] with sums in F32 ---
//
// With g = lane / 4, t = lane % 4 a lane holds, in pairs of neighbours,
// a[0]: (row g, k 2t), a[1]: (g + 8, 2t), a[2]: (g, 2t + 8), a[3]: (g + 8, 2t + 8);
// b0: (k 2t, column g), b1: (2t + 8, g);  c[0], c[1]: (row g, columns 2t, 2t + 1), c[2], c[3]: row g
// + 8.

__device__ __forceinline__ void mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                        uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices; lane 8 i + r addresses row r of matrix i.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}

// --- arithmetic that is the same in every kernel, whatever the compiler makes of its surroundings ---

__device__ __forceinline__ float exp2(float x) {  // exp2(0) is 1
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace forerun::cuda::ptx
