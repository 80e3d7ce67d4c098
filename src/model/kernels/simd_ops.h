// The vector type of one instruction set behind function pointers, for its test:
// simd_ops.cpp is compiled once per set, with the options of the set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forerun::kernels {

constexpr int kMostLanes = 16;

struct SimdOps {
  using Operation = void (*)(const float* a, const float* b, const float* c, float* y);
  struct Bits {
    int shift;
    uint8_t mask;
    void (*run)(const std::byte* a, std::byte* y);
  };
  struct FiveBits {
    int nibble;
    int bit;
    void (*run)(const std::byte* low, const std::byte* fifth, std::byte* y);
  };
  struct SixBits {
    int step;
    void (*run)(const std::byte* low, const std::byte* high, std::byte* y);
  };
  struct Dot {
    int max_weight;
    // acc + the dot product of 4 vectors of bytes with 16 activations
    void (*run)(const int32_t* acc, const std::byte* w, const int8_t* x, int32_t* y);
  };

  const char* name;
  int lanes;
  int max_rows;
  int byte_bias;
  int fifth_offset;
  bool signed_weights;

  Operation broadcast, add, sub, mul, div, fma, max, min, abs;
  Operation fma_chain;  // a * b added to c four times
  float (*reduce_max)(const float* a);
  float (*reduce_add)(const float* a);
  void (*transpose)(const float* a, float* y);  // a, y: `lanes` vectors
  Operation fma_by[4];                          // b: four numbers

  float (*half_to_float)(uint16_t h);
  float (*round_to_half)(float x);
  void (*load_half)(const uint16_t* p, float* y);
  void (*load_bfloat)(const uint16_t* p, float* y);
  void (*load_int8)(const int8_t* p, float* y);
  void (*load_uint8)(const uint8_t* p, float* y);

  void (*broadcast_int)(int32_t x, int32_t* y);
  void (*add_ints)(const int32_t* a, const int32_t* b, int32_t* y);
  void (*to_floats)(const int32_t* a, float* y);
  void (*as_floats)(const int32_t* a, float* y);
  void (*round_to_ints)(const float* a, int32_t* y);
  int32_t (*reduce_add_ints)(const int32_t* a);
  void (*store_int8)(const int32_t* a, int8_t* y);
  void (*exponent_of_bits)(const float* a, float* y);
  void (*exp2_int)(const int32_t* n, float* y);

  Bits bits[12];
  void (*either)(const std::byte* a, const std::byte* b, std::byte* y);
  void (*look_up)(const uint8_t (&table)[16], const std::byte* places, std::byte* y);
  FiveBits five_bits[4];
  SixBits six_bits[4];
  Dot dot16[4];
};

}  // namespace forerun::kernels
