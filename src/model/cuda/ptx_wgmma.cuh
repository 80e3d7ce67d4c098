// Products of warpgroups, four warps each, which only sm_90a has: c[64][8 NT] += a[64][16] b[16][8 NT]
// with sums in F32, a in registers and b in shared memory.
//
// Warp w of the four has rows 16 w to 16 w + 15 of a and c, in the registers that mma_f16() has.
// Measured on an H200: the sums, too, have the bits of mma_f16()'s.
#pragma once

#include <cstdint>

#include "model/cuda/ptx.cuh"

namespace forerun::cuda::ptx {

// A warpgroup leaves registers to others, or takes some that others leave: it has so many then.
template <int kRegisters>
__device__ __forceinline__ void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Registers that were written before, of sums or of a, may be used by the products that follow.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// All products since the last time become one batch.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until no more than so many batches are under way. Until then their registers must not be touched
// nor what they read of shared memory be written.
template <int kBatches>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kBatches) : "memory");
}

// Behind such a wait: keeps the compiler, which does not know what that waits for, from reading c
// before.
template <int NT>
__device__ __forceinline__ void wgmma_results(float (&c)[NT][4]) {
#pragma unroll
  for (int i = 0; i < NT * 4; ++i) asm volatile("" : "+f"(c[i / 4][i % 4])::"memory");
}

// b in shared memory: rows (which are columns of b) of 64 bytes, whose sixteens are swizzled; eight of
// them begin where an address is a multiple of 512. A product takes two sixteens of each row: `b`
// addresses the first one of row 0 as if nothing were swizzled.
__device__ __forceinline__ uint64_t wgmma_operand(const void* b) {
  constexpr uint64_t kEightRows = 512, kSwizzle64 = 2;
  return (address(b) & 0x3ffffu) >> 4 | kEightRows >> 4 << 32 | kSwizzle64 << 62;
}

// kAdds: to what c has; else c becomes the product.
#define FORERUN_FOUR(nt) "+f"(c[nt][0]), "+f"(c[nt][1]), "+f"(c[nt][2]), "+f"(c[nt][3])
template <bool kAdds>
__device__ __forceinline__ void wgmma_f16(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "{%32,%33,%34,%35}, %36, %37, 1, 1, 0;"
      : FORERUN_FOUR(0), FORERUN_FOUR(1), FORERUN_FOUR(2), FORERUN_FOUR(3), FORERUN_FOUR(4),
        FORERUN_FOUR(5), FORERUN_FOUR(6), FORERUN_FOUR(7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdds));
}
template <bool kAdds>
__device__ __forceinline__ void wgmma_f16(float (&c)[16][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "{%64,%65,%66,%67}, %68, %69, 1, 1, 0;"
      : FORERUN_FOUR(0), FORERUN_FOUR(1), FORERUN_FOUR(2), FORERUN_FOUR(3), FORERUN_FOUR(4),
        FORERUN_FOUR(5), FORERUN_FOUR(6), FORERUN_FOUR(7), FORERUN_FOUR(8), FORERUN_FOUR(9),
        FORERUN_FOUR(10), FORERUN_FOUR(11), FORERUN_FOUR(12), FORERUN_FOUR(13), FORERUN_FOUR(14),
        FORERUN_FOUR(15)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdds));
}
#undef FORERUN_FOUR

}  // namespace forerun::cuda::ptx
