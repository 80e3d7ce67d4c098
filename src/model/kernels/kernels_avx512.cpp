#define FORERUN_ISA avx512
#define FORERUN_SIMD "model/kernels/simd_avx512.h"
#include "model/kernels/kernel_set_impl.h"
