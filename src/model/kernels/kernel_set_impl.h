// The kernels of one instruction set. A file per set defines FORERUN_ISA and FORERUN_SIMD,
// its simd_*.h, and includes this. It is compiled with the options of its set, so nothing
// in it may be shared with the rest of the program: no templates of the standard library,
// and everything in the namespace FORERUN_ISA.
#pragma once

#include FORERUN_SIMD

#include "model/kernels/attention_impl.h"
#include "model/kernels/formats_impl.h"
#include "model/kernels/kernels.h"
#include "model/kernels/rows_impl.h"

#define FORERUN_NAME_OF(isa) #isa
#define FORERUN_NAME(isa) FORERUN_NAME_OF(isa)

namespace forerun::kernels::FORERUN_ISA {

const KernelSet& kernel_set() {
  static constexpr KernelSet kSet{
      .name = FORERUN_NAME(FORERUN_ISA),
      .lanes = kLanes,
      .rows_together = RowsBlock::kRows,
      .activation_bytes = sizeof(RowsBlock),
      .formats = kFormats,
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .quantize = quantize<RowsBlock>,
      .gate = gate,
      .attend = attend,
      .attention_scratch_floats = attention_scratch_floats,
      .merge = merge,
  };
  return kSet;
}

}  // namespace forerun::kernels::FORERUN_ISA
