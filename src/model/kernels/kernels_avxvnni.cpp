#define FORERUN_ISA avxvnni
#define FORERUN_AVXVNNI
#define FORERUN_SIMD "model/kernels/simd_avx2.h"
#include "model/kernels/kernel_set_impl.h"
