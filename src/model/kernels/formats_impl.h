// All weight types that have kernels. A new one is a format (see products_impl.h) and a
// line here.
#pragma once

#include "model/kernels/formats_32_impl.h"
#include "model/kernels/formats_float_impl.h"
#include "model/kernels/formats_k_impl.h"

#ifdef FORERUN_I8MM
#include "model/kernels/products_pairs_impl.h"
#endif

namespace forerun::kernels::FORERUN_ISA {

#ifdef FORERUN_I8MM
template <typename Format>
using QuantProduct = PairProduct<Format>;
#else
template <typename Format>
using QuantProduct = BlockProduct<Format>;
#endif

// What rows of activations are made of for these products.
using RowsBlock = QuantProduct<Q8_0>::Block;

constexpr WeightFormat kFormats[] = {
    weight_format<Q4_0, QuantProduct<Q4_0>>(), weight_format<Q4_1, QuantProduct<Q4_1>>(),
    weight_format<Q5_0, QuantProduct<Q5_0>>(), weight_format<Q5_1, QuantProduct<Q5_1>>(),
    weight_format<Q8_0, QuantProduct<Q8_0>>(), weight_format<Q4_K, QuantProduct<Q4_K>>(),
    weight_format<Q5_K, QuantProduct<Q5_K>>(), weight_format<Q6_K, QuantProduct<Q6_K>>(),
    weight_format<F16, FloatProduct<F16>>(),   weight_format<BF16, FloatProduct<BF16>>(),
    weight_format<F32, FloatProduct<F32>>(),
};

}  // namespace forerun::kernels::FORERUN_ISA
