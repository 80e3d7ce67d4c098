#define FORERUN_ISA portable
#define FORERUN_SIMD "model/kernels/simd_portable.h"
#include "model/kernels/kernel_set_impl.h"
