// All weight types that have kernels. A new one is a format (see products_impl.h) and a
// line here.
#pragma once

#include "model/kernels/formats_32_impl.h"
#include "model/kernels/formats_float_impl.h"
#include "model/kernels/formats_k_impl.h"

namespace forerun::kernels::FORERUN_ISA {

constexpr WeightFormat kFormats[] = {
    weight_format<Q4_0, BlockProduct<Q4_0>>(), weight_format<Q4_1, BlockProduct<Q4_1>>(),
    weight_format<Q5_0, BlockProduct<Q5_0>>(), weight_format<Q5_1, BlockProduct<Q5_1>>(),
    weight_format<Q8_0, BlockProduct<Q8_0>>(), weight_format<Q4_K, BlockProduct<Q4_K>>(),
    weight_format<Q5_K, BlockProduct<Q5_K>>(), weight_format<Q6_K, BlockProduct<Q6_K>>(),
    weight_format<F16, FloatProduct<F16>>(),   weight_format<BF16, FloatProduct<BF16>>(),
    weight_format<F32, FloatProduct<F32>>(),
};

}  // namespace forerun::kernels::FORERUN_ISA
