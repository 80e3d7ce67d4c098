// All weight types that have kernels. A new one is a format (see products_impl.h) and a
// line here.
#pragma once

#include "model/kernels/formats_32_impl.h"
#include "model/kernels/formats_float_impl.h"
#include "model/kernels/formats_k_impl.h"
#include "model/kernels/products_unpacked_impl.h"

#if defined(FORERUN_AMX)
#include "model/kernels/products_amx_impl.h"
#elif defined(FORERUN_I8MM)
#include "model/kernels/products_pairs_impl.h"
#endif

namespace forerun::kernels::FORERUN_ISA {

// How the set multiplies quantised weights, and what its rows of activations are made of.
#if defined(FORERUN_AMX)
using RowsBlock = ActivationBlock;
template <typename Format>
constexpr auto multiply_blocks = multiply_by_tiles<Format>;
#elif defined(FORERUN_I8MM)
using RowsBlock = ActivationPair;
template <typename Format>
constexpr auto multiply_blocks = multiply_few_or_many<Format, PairProduct>;
#else
using RowsBlock = ActivationBlock;
template <typename Format>
constexpr auto multiply_blocks = multiply_few_or_many<Format, BlockProduct>;
#endif

template <typename Format>
constexpr WeightFormat kBlockFormat = weight_format<Format>(Operand::kBlocks, multiply_blocks<Format>);
template <typename Format>
constexpr auto multiply_floats =
    kUnpacksFloats ? multiply_few_or_many<Format, FloatProduct> : multiply<Format, FloatProduct<Format>>;
template <typename Format>
constexpr WeightFormat kFloatFormat = weight_format<Format>(Operand::kFloats, multiply_floats<Format>);

constexpr WeightFormat kFormats[] = {
    kBlockFormat<Q4_0>, kBlockFormat<Q4_1>,
    kBlockFormat<Q5_0>, kBlockFormat<Q5_1>,
    kBlockFormat<Q8_0>, kBlockFormat<MXFP4>,
    kBlockFormat<Q4_K>, kBlockFormat<Q5_K>,
    kBlockFormat<Q6_K>, kFloatFormat<F16>,
    kFloatFormat<BF16>, weight_format<F32>(Operand::kFloats, multiply<F32, FloatProduct<F32>>),
};

}  // namespace forerun::kernels::FORERUN_ISA
