// Products of a weight matrix with rows, of which a few cost hardly more than reading the weights once:
// y[row][out] = sum over k of W[out][k] x[row][k].
//
// Row invariance: a row's bits depend neither on how many rows share the product nor on its place
// among them. The order of summation belongs to the matrix: its weights, tile after tile, are cut
// into equal runs, across the borders of tiles. A run is summed in order, by one block of threads, and
// has a part of the sum of every tile that it touches. The parts of a tile are added in groups of
// eight runs: those of a group in order, then the groups in order. With few rows a block has one run,
// or several, and whoever reads the result adds the parts (Parts); with many a block has a group, and
// leaves sums of groups. The number of rows chooses nothing but that, and how many columns of the tensor
// cores there are.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <ggml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace forerun::cuda {

// How matrices of one type of a GGUF file are packed and multiplied.
struct Format {
  ggml_type type;
  int tile_rows;    // outputs of a tile
  int stage_depth;  // inputs of a stage; n_in is filled up with zeros to a multiple of it
  int stage_bytes;  // packed, of a tile's outputs
};
// nullptr: there is no kernel for that type.
const Format* format_of(ggml_type type);

// How the sums of a matrix are cut. The same for every number of rows, and on every GPU of a
// generation.
struct Cut {
  // Two blocks of threads, each with a run, on each of 132 SMs. With fewer some SMs would have one and
  // others two; matrices with more tiles have a run per tile. A constant, so that GPUs with other
  // numbers of SMs cut sums alike.
  static constexpr int kSms = 132, kRuns = 2 * kSms;
  static constexpr int kMostTileRuns = 32;  // more parts would cost more to add than they save
  static constexpr int kGroup = 8;          // runs that are added before they are added to others
  static constexpr int kMostGroups = 8;     // that touch a tile

  int tile_rows;
  int n_tiles;
  int n_stages;  // of a tile
  int n_runs;

  __host__ __device__ int first(int run) const {
    return static_cast<int>(int64_t{n_tiles} * n_stages * run / n_runs);
  }
  __host__ __device__ int run_of(int stage) const {
    return static_cast<int>((int64_t{stage + 1} * n_runs - 1) / (int64_t{n_tiles} * n_stages));
  }
  // The runs that touch the tile of an output.
  struct Runs {
    int first, last;
    __host__ __device__ int n() const { return last - first + 1; }
    __host__ __device__ int n_groups() const { return last / kGroup - first / kGroup + 1; }
  };
  __host__ __device__ Runs runs(int output) const {
    const int tile = output / tile_rows;
    return {.first = run_of(tile * n_stages), .last = run_of(tile * n_stages + n_stages - 1)};
  }
  __host__ __device__ int n_groups() const { return (n_runs + kGroup - 1) / kGroup; }
  __host__ __device__ int n_outputs() const { return n_tiles * tile_rows; }  // filled up
  // With more, a run would have no stage: its part would be left unwritten.
  int most_runs() const { return std::min(kMostTileRuns, n_stages) * n_tiles; }
  int most_parts(bool of_groups) const;  // of any output
};

// A matrix as the kernels read it, or several of the same format and n_in one behind the other.
struct Matrix {
  const Format* format = nullptr;
  const std::byte* data = nullptr;  // on the device
  int64_t n_in = 0;
  int64_t n_out = 0;  // filled up to whole tiles

  size_t n_bytes() const;
  Cut cut() const;
  int most_parts(int n_rows) const;  // of any output, in a product with so many rows
};
Matrix matrix_of(const Format& format, int64_t n_in, int64_t n_out);

// Rows [0, n_rows) of a matrix as they lie in a file, on the device, into the place that begins at
// `packed` (aligned to 128 bytes), which is as large as n_bytes() of the whole. Outputs beyond n_rows
// become zeros. Products begin to read weights before the kernel ahead of them has ended: synchronise
// the stream once between packing and the first product.
void pack(const Format& format, const std::byte* file_rows, int64_t n_in, int64_t n_rows,
          std::byte* packed, cudaStream_t stream);

// What a product leaves for the kernel that reads it.
struct Parts {
  const float* data = nullptr;  // [part][row][output, filled up]
  int64_t stride = 0;           // floats from part to part
  int n_outputs = 0;
  Cut cut{};
  bool of_groups = false;  // a part is the sum of a group of runs, else of a run
};

// Rows of activations as products read them: F16, in blocks of 32 inputs, [row][32]. The four eights of
// a row change places with its number, so that the tensor cores, which fetch an eight of eight rows at
// once, find these in different banks of shared memory. It is the order that Hopper calls a swizzle of
// 64 bytes. `padded_rows`: see padded().
constexpr int kOperandBlock = 32;
__host__ __device__ inline int operand_eight(int eight, int row) {
  return eight ^ row / 2 % 4;
}
__host__ __device__ inline int64_t operand_index(int64_t k, int row, int padded_rows) {
  const int eight = operand_eight(static_cast<int>(k % 32 / 8), row);
  return (k / 32 * padded_rows + row) * 32 + eight * 8 + k % 8;
}
constexpr int kMaxRows = 64;  // of one operand
// Rows that an operand has room for, of which the first n count; those beyond may be anything. Of more
// rows than an operand holds there is one behind the other.
inline int padded(int n_rows) {
  int padded_rows = 8;
  while (padded_rows < n_rows && padded_rows < kMaxRows) padded_rows *= 2;
  return padded_rows;
}
struct Operand {
  __half* data = nullptr;
  int padded_rows = 0;
  int64_t n_inputs = 0;  // at least padded_inputs() of all that read it

  __host__ __device__ int64_t index(int64_t k, int row) const {
    return row / padded_rows * (padded_rows * n_inputs) +
           operand_index(k, row % padded_rows, padded_rows);
  }
};
inline int64_t operand_halves(int n_rows, int64_t n_inputs) {
  const int padded_rows = padded(n_rows);
  return int64_t{(n_rows + padded_rows - 1) / padded_rows} * padded_rows * n_inputs;
}
// Inputs that an operand has: those beyond n_in must be zeros.
int64_t padded_inputs(const Format& format, int64_t n_in);

// parts: room for most_parts() * n_rows * cut().n_outputs() floats, aligned to 16 bytes. How many parts
// there are depends on the current device, which has to be the same in all three.
void multiply(const Matrix& matrix, const Operand& x, int n_rows, float* parts, cudaStream_t stream);
Parts parts_of(const Matrix& matrix, int n_rows, const float* data);

}  // namespace forerun::cuda
