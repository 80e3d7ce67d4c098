// Our own CPU kernels: products of packed weights with a few rows of activations,
// attention over the KV cache, and what lies between them.
//
// One KernelSet per instruction set, all written once over a small vector type
// (simd_*.h) and compiled once per set; best_kernels() picks what this CPU has.
//
// Row invariance. The bits of a row's result do not depend on how many rows share the
// pass, on their order, on the number of threads, or on cells a row does not see:
//  - products: every output element is one chain of additions over the row's blocks in
//    order, in a vector lane of its own. Integer sums are exact, so it makes no
//    difference either how they are grouped. The number of rows only decides how
//    often a weight is loaded.
//  - attention: a row's cells are visited in the order of their positions, in chunks
//    that begin at multiples of kAttentionChunk; chunks are merged in order.
//  - everything else computes each row, head or block of 32 by itself.
// Products are the same bits on every instruction set as well.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace forerun {

// 32 activations as 8-bit integers: x[i] = scale * q[i]. The scale is rounded to half
// precision, as ggml's is, so that both compute with the same numbers.
constexpr int kActivationBlock = 32;
struct ActivationBlock {
  int8_t q[kActivationBlock];
  float scale;
  float scaled_sum;        // scale * sum
  int32_t sum;             // of q
  int32_t first_half_sum;  // of the first 16 of q
  static constexpr int kRows = 1;
};

// The same of two rows, for instructions that multiply pairs of them: numbers of the first
// row twice, then those of the second.
struct ActivationPair {
  int8_t q[4][2][8];  // 8 inputs of the first row, then of the second
  float scale[4];
  float scaled_sum[4];
  int32_t sum[4];
  static constexpr int kRows = 2;
};

// What a weight format is multiplied with. Blocks are those of one row, or of a bundle of
// rows that lie together (KernelSet::rows_together).
enum class Operand {
  kBlocks,  // ActivationBlock[n_in / 32] or ActivationPair[n_in / 32]
  kFloats,  // float[n_in]
};

// Multiplies `n_tiles` tiles of packed weights with `n_rows` rows of activations (any
// number; few is what it is made for):
//   y[row * y_stride + tile * lanes + lane]
// The first row is the first of its bundle. What the last bundle has beyond the rows may
// be anything.
struct ProductArgs {
  const std::byte* tiles;  // the first of them
  int64_t n_tiles;
  int64_t n_blocks;  // of WeightFormat::block_size along n_in
  const std::byte* x;
  size_t x_stride;  // bytes from one bundle of blocks, or one row of floats, to the next
  int n_rows;
  float* y;
  int64_t y_stride;
};

// How the weights of one ggml type are packed and multiplied. A tile holds `lanes`
// outputs (rows of the matrix as ggml stores it), block after block along n_in, each
// block with the scales and quants of all its outputs side by side.
struct WeightFormat {
  ggml_type type;
  Operand operand;
  int block_size;      // weights along n_in in a block; n_in is a multiple of it
  size_t block_bytes;  // of a packed block: `lanes` outputs
  // Packs up to `lanes` rows (missing ones become zeros), `row_bytes` apart, as one tile.
  void (*pack)(const std::byte* rows, size_t row_bytes, int n_rows, int64_t n_blocks, std::byte* tile);
  void (*multiply)(const ProductArgs& args);
};

enum class GateActivation {
  kSilu,
  kGelu,
  kReluSquared,
  // x * sigmoid(kSwishSlope * x), where x is the gate or, if that is less, kGateLimit. What it
  // multiplies is held within +-kGateLimit, and 1 is added to it.
  kLimitedSwish,
};
constexpr float kSwishSlope = 1.702f;
constexpr float kGateLimit = 7.0f;

// What a norm multiplies with and adds; nullptr: nothing.
struct LayerNormArgs {
  const float* weight;
  const float* bias;
  float eps;
};

// Cells of a KV cache as attention reads them: `row_bytes` apart, each with all heads of
// keys (or values) one after another.
struct CellRows {
  const std::byte* data;
  size_t row_bytes;
  ggml_type type;  // F16, F32 or Q8_0
};

// The cells a row sees, by position: position p < n_shared lies in shared[p], position
// n_shared + i in own[i]. It sees positions first <= p < end. Rows of one sequence have
// the same `shared` and mostly differ in `own` alone.
struct VisibleCells {
  const int32_t* shared;
  const int32_t* own;
  int32_t n_shared;
  int32_t first;
  int32_t end;
};

constexpr int kAttentionChunk = 128;
constexpr int kMaxHeadDim = 576;  // that attention takes

struct AttentionShape {
  int head_dim;
  int n_heads;
  int n_kv_heads;
  float scale;         // of scores
  float soft_cap = 0;  // cap * tanh(score / cap) instead of scores; 0: none
};

// The attention of some cells: softmax-weighted values, not yet divided by the sum of
// the weights, and what is needed to merge it with others. A head's partial result is
// head_dim + 2 floats: values, then the largest score, then the sum of exp(score - largest).
constexpr int kPartialExtra = 2;

struct AttentionArgs {
  AttentionShape shape;
  CellRows keys;
  CellRows values;
  const float* q;  // [n_heads * head_dim] per row, `q_stride` floats apart
  int64_t q_stride;
  const VisibleCells* rows;
  int n_rows;
  int kv_head;  // whose query heads are computed: n_heads / n_kv_heads of them
  int first_chunk, end_chunk;
  // Where the result of row r, query head h (of all heads), goes: head_dim + kPartialExtra
  // floats at out + r * out_row_stride + h * (head_dim + kPartialExtra).
  float* out;
  int64_t out_row_stride;
  float* scratch;  // attention_scratch_floats()
};

// Partial results of one head (AttentionArgs), `stride` floats apart.
struct MergeArgs {
  const float* partials;
  int n;
  int64_t stride;
  int head_dim;
  const float* sink = nullptr;  // the score of a cell more, whose value is nothing; may be none
};

struct KernelSet {
  const char* name;  // "amx", "avx512", "avxvnni", "avx2", "i8mm", "neon", "portable"
  int lanes;
  int rows_together;        // rows of a bundle, whose blocks lie together
  size_t activation_bytes;  // of 32 inputs of a bundle
  std::span<const WeightFormat> formats;

  // y = x / rms(x) * weight over n floats; weight may be nullptr (no factor).
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* y);
  // y = (x - mean(x)) / deviation(x) * weight + bias over n floats. Same bits on every instruction set.
  void (*layer_norm)(const LayerNormArgs& args, const float* x, int64_t n, float* y);
  // Rounds n numbers, a multiple of 32, of row `place` of a bundle. Of the blocks it writes
  // nothing but what is that row's.
  void (*quantize)(const float* x, int64_t n, int place, std::byte* blocks);
  // y = activation(gate) * up, or times what the activation makes of up; up may be nullptr (no factor).
  void (*gate)(GateActivation activation, const float* gate, const float* up, int64_t n, float* y);

  // Attends to chunks [first_chunk, end_chunk) of positions, merging them in order. A row
  // that sees none of them gets sum 0 and the largest score -infinity.
  void (*attend)(const AttentionArgs& args);
  size_t (*attention_scratch_floats)(const AttentionShape& shape, int n_rows);
  // Merges partial results in order, with the sink behind them, and divides: head_dim floats.
  // Same bits as one call for all chunks if all but the first partial result are of one
  // chunk each. Empty ones change nothing; if all are, the result is 0.
  void (*merge)(const MergeArgs& args, float* y);
};

// The best set for this CPU. FORERUN_KERNELS=name in the environment picks another, for
// tests and comparisons.
const KernelSet& best_kernels();
// All sets this CPU can run, the best first; the portable one is always the last.
std::span<const KernelSet* const> available_kernels();

// The format of a type, or nullptr: it has none of its own.
const WeightFormat* find_format(const KernelSet& kernels, ggml_type type);

}  // namespace forerun
