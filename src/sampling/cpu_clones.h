// FORERUN_CPU_CLONES in front of a function definition compiles the function for
// AVX2 and AVX-512 as well as for the baseline x86-64; the loader picks by the CPU. It is
// for plain loops that the compiler vectorises. On other machines the baseline
// already has the vectors in question, and it does nothing.
//
// The results do not depend on the clone: vectors do the same IEEE operations in
// the same order, given -ffp-contract=off where floating point rounds.
#pragma once

#include <cstddef>  // defines __GLIBC__, whose loader the clones need

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define FORERUN_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FORERUN_CPU_CLONES
#endif
