#define FORERUN_ISA amx
#define FORERUN_AMX
#define FORERUN_SIMD "model/kernels/simd_avx512.h"
#include "model/kernels/kernel_set_impl.h"
