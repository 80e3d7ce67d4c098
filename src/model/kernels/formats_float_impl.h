// The weight types that are numbers: F16, BF16, F32. Input after input, those of all
// outputs of a tile side by side.
#pragma once

#include "model/kernels/products_impl.h"

namespace forerun::kernels::FORERUN_ISA {

template <ggml_type kTypeOfWeights, typename Number>
struct PlainFormat {
  static constexpr ggml_type kType = kTypeOfWeights;
  static constexpr int kBlockSize = 1;

  using Source = Number;
  struct Packed {
    Number numbers[kLanes];
  };

  static void pack(Source source, int lane, Packed& packed) { packed.numbers[lane] = source; }
};

struct F16 : PlainFormat<GGML_TYPE_F16, uint16_t> {
  static Floats to_floats(const Packed& packed) { return load_half(packed.numbers); }
};

struct BF16 : PlainFormat<GGML_TYPE_BF16, uint16_t> {
  static Floats to_floats(const Packed& packed) { return load_bfloat(packed.numbers); }
};

struct F32 : PlainFormat<GGML_TYPE_F32, float> {
  static Floats to_floats(const Packed& packed) { return load(packed.numbers); }
};

}  // namespace forerun::kernels::FORERUN_ISA
