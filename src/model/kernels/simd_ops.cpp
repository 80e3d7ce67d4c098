// FORERUN_ISA, FORERUN_SIMD (which simd_*.h) and what that asks for come from the build.
#include "model/kernels/simd_ops.h"

#include FORERUN_SIMD

#define FORERUN_NAME_OF(isa) #isa
#define FORERUN_NAME(isa) FORERUN_NAME_OF(isa)

namespace forerun::kernels::FORERUN_ISA {
namespace {

static_assert(kLanes <= kMostLanes);
static_assert(sizeof(Floats) == 4 * kLanes && sizeof(Ints) == 4 * kLanes && sizeof(Bytes) == 4 * kLanes);

Ints load_ints(const int32_t* p) {
  Ints a;
  memcpy(&a, p, sizeof(a));
  return a;
}
void store_ints(int32_t* p, Ints a) {
  memcpy(p, &a, sizeof(a));
}
void store_bytes(std::byte* p, Bytes a) {
  memcpy(p, &a, sizeof(a));
}

template <int kShift, uint8_t kMask>
constexpr SimdOps::Bits bits_op() {
  return {kShift, kMask,
          [](const std::byte* a, std::byte* y) { store_bytes(y, bits<kShift, kMask>(load_bytes(a))); }};
}

template <int kNibble, int kBit>
constexpr SimdOps::FiveBits five_bits_op() {
  return {kNibble, kBit, [](const std::byte* low, const std::byte* fifth, std::byte* y) {
            store_bytes(y, five_bits<kNibble, kBit>(load_bytes(low), load_bytes(fifth)));
          }};
}

template <int kStep>
constexpr SimdOps::SixBits six_bits_op() {
  return {kStep, [](const std::byte* low, const std::byte* high, std::byte* y) {
            store_bytes(y, six_bits<kStep>(load_bytes(low), load_bytes(high)));
          }};
}

template <int kMaxWeight>
constexpr SimdOps::Dot dot16_op() {
  return {kMaxWeight, [](const int32_t* acc, const std::byte* w, const int8_t* x, int32_t* y) {
            Bytes weights[4];
            for (int g = 0; g < 4; ++g) weights[g] = load_bytes(w + g * sizeof(Bytes));
            store_ints(y, dot16<kMaxWeight>(load_ints(acc), weights, x));
          }};
}

void fma_chain_op(const float* a, const float* b, const float* c, float* y) {
  Floats sum = load(c);
  for (int i = 0; i < 4; ++i) sum = fma(load(a), load(b), sum);
  store(y, sum);
}

void transpose_op(const float* a, float* y) {
  Floats rows[kLanes];
  for (int i = 0; i < kLanes; ++i) rows[i] = load(a + i * kLanes);
  transpose(rows);
  for (int i = 0; i < kLanes; ++i) store(y + i * kLanes, rows[i]);
}

template <int kIndex>
void fma_by_op(const float* a, const float* b, const float* c, float* y) {
  store(y, fma_by<kIndex>(load(a), load_four(b), load(c)));
}

}  // namespace

const SimdOps& simd_ops() {
  using In = const float*;
  static constexpr SimdOps kOps{
      .name = FORERUN_NAME(FORERUN_ISA),
      .lanes = kLanes,
      .max_rows = kMaxRows,
      .byte_bias = kByteBias,
      .fifth_offset = kFifthOffset,
      .signed_weights = kSignedWeights,
      .broadcast = [](In a, In, In, float* y) { store(y, broadcast(*a)); },
      .add = [](In a, In b, In, float* y) { store(y, add(load(a), load(b))); },
      .sub = [](In a, In b, In, float* y) { store(y, sub(load(a), load(b))); },
      .mul = [](In a, In b, In, float* y) { store(y, mul(load(a), load(b))); },
      .div = [](In a, In b, In, float* y) { store(y, div(load(a), load(b))); },
      .fma = [](In a, In b, In c, float* y) { store(y, fma(load(a), load(b), load(c))); },
      .max = [](In a, In b, In, float* y) { store(y, max(load(a), load(b))); },
      .min = [](In a, In b, In, float* y) { store(y, min(load(a), load(b))); },
      .abs = [](In a, In, In, float* y) { store(y, abs(load(a))); },
      .fma_chain = fma_chain_op,
      .reduce_max = [](In a) { return reduce_max(load(a)); },
      .reduce_add = [](In a) { return reduce_add(load(a)); },
      .transpose = transpose_op,
      .fma_by = {fma_by_op<0>, fma_by_op<1>, fma_by_op<2>, fma_by_op<3>},
      .half_to_float = half_to_float,
      .round_to_half = round_to_half,
      .load_half = [](const uint16_t* p, float* y) { store(y, load_half(p)); },
      .load_bfloat = [](const uint16_t* p, float* y) { store(y, load_bfloat(p)); },
      .load_int8 = [](const int8_t* p, float* y) { store(y, load_int8(p)); },
      .load_uint8 = [](const uint8_t* p, float* y) { store(y, load_uint8(p)); },
      .broadcast_int = [](int32_t x, int32_t* y) { store_ints(y, broadcast_int(x)); },
      .add_ints = [](const int32_t* a, const int32_t* b,
                     int32_t* y) { store_ints(y, add(load_ints(a), load_ints(b))); },
      .to_floats = [](const int32_t* a, float* y) { store(y, to_floats(load_ints(a))); },
      .as_floats = [](const int32_t* a, float* y) { store(y, as_floats(load_ints(a))); },
      .round_to_ints = [](In a, int32_t* y) { store_ints(y, round_to_ints(load(a))); },
      .reduce_add_ints = [](const int32_t* a) { return reduce_add(load_ints(a)); },
      .store_int8 = [](const int32_t* a, int8_t* y) { store_int8(y, load_ints(a)); },
      .exponent_of_bits = [](In a, float* y) { store(y, exponent_of_bits(load(a))); },
      .exp2_int = [](const int32_t* n, float* y) { store(y, exp2_int(load_ints(n))); },
      .bits = {bits_op<0, 0x0F>(), bits_op<4, 0x0F>(), bits_op<-4, 0x10>(), bits_op<-3, 0x10>(),
               bits_op<-1, 0x10>(), bits_op<1, 0x10>(), bits_op<3, 0x10>(), bits_op<-4, 0x30>(),
               bits_op<-2, 0x30>(), bits_op<0, 0x30>(), bits_op<2, 0x30>(), bits_op<7, 0x01>()},
      .either = [](const std::byte* a, const std::byte* b,
                   std::byte* y) { store_bytes(y, either(load_bytes(a), load_bytes(b))); },
      .look_up = [](const uint8_t(&table)[16], const std::byte* places,
                    std::byte* y) { store_bytes(y, look_up(table, load_bytes(places))); },
      .five_bits = {five_bits_op<0, 0>(), five_bits_op<1, 3>(), five_bits_op<0, 4>(),
                    five_bits_op<1, 7>()},
      .six_bits = {six_bits_op<0>(), six_bits_op<1>(), six_bits_op<2>(), six_bits_op<3>()},
      .dot16 = {dot16_op<15>(), dot16_op<31>(), dot16_op<63>(), dot16_op<255>()},
  };
  return kOps;
}

}  // namespace forerun::kernels::FORERUN_ISA
