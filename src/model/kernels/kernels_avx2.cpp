#define FORERUN_ISA avx2
#define FORERUN_SIMD "model/kernels/simd_avx2.h"
#include "model/kernels/kernel_set_impl.h"
