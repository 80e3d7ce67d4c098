#define FORERUN_ISA i8mm
#define FORERUN_I8MM
#define FORERUN_SIMD "model/kernels/simd_neon.h"
#include "model/kernels/kernel_set_impl.h"
