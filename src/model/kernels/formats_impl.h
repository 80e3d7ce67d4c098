// All weight types that have kernels. A new one is a format (see products_impl.h) and a
// line here.
#pragma once

#include "model/kernels/formats_32_impl.h"
#include "model/kernels/formats_float_impl.h"
#include "model/kernels/formats_k_impl.h"

#ifdef FORERUN_AMX
#include "model/kernels/products_amx_impl.h"
#endif

namespace forerun::kernels::FORERUN_ISA {

template <typename Format>
constexpr WeightFormat block_format() {
#ifdef FORERUN_AMX
  return tile_format<Format>();
#else
  return weight_format<Format, BlockProduct<Format>>();
#endif
}

constexpr WeightFormat kFormats[] = {
    block_format<Q4_0>(),
    block_format<Q4_1>(),
    block_format<Q5_0>(),
    block_format<Q5_1>(),
    block_format<Q8_0>(),
    block_format<Q4_K>(),
    block_format<Q5_K>(),
    block_format<Q6_K>(),
    weight_format<F16, FloatProduct<F16>>(),
    weight_format<BF16, FloatProduct<BF16>>(),
    weight_format<F32, FloatProduct<F32>>(),
};

}  // namespace forerun::kernels::FORERUN_ISA
