#define FORERUN_ISA neon
#define FORERUN_SIMD "model/kernels/simd_neon.h"
#include "model/kernels/kernel_set_impl.h"
