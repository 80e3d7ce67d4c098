// A weight matrix as the CPU multiplies it: packed for our kernels, or, where a type
// has none, as the file has it, for ggml's dot products.
//
// Row invariance: our formats have it (kernels.h); the others take one call of ggml's
// dot product per row and output, whatever the number of rows.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/kernels.h"

namespace forerun {

// Rows of operands: activations in the form that a matrix wants. Blocks for our formats lie
// in bundles (KernelSet::rows_together), the first row at the beginning of one; of anything
// else a row is by itself.
struct OperandRows {
  const std::byte* data;
  size_t stride;      // from one bundle to the next
  int rows_together;  // rows of a bundle
  int n_rows;
};

struct PackedMatrix {
  ggml_type type;
  int64_t n_in;
  int64_t n_out;
  int lanes;                        // outputs per tile
  const WeightFormat* format;       // nullptr: rows as in the file
  const std::byte* data = nullptr;  // not owned

  int64_t n_tiles() const { return (n_out + lanes - 1) / lanes; }
  // Of the packed matrix, padding of the last tile included.
  size_t n_bytes() const { return static_cast<size_t>(n_tiles()) * tile_bytes(); }
  size_t tile_bytes() const;

  // What ggml's dot product multiplies rows of the file with. Only without a format.
  ggml_type dot_type() const;
  // Whether it is multiplied with rows of floats.
  bool reads_floats() const;

  // Packs the file's rows of tiles [first, end) to where data will be. Only with a format.
  void pack(const std::byte* file_rows, int64_t first, int64_t end, std::byte* packed) const;

  // The outputs of tiles [first, end): y[row * y_stride + i], i counted from tile `first`.
  void multiply(int64_t first, int64_t end, const OperandRows& x, float* y, int64_t y_stride) const;

 private:
  void multiply_tail(const OperandRows& x, float* y, int64_t y_stride) const;
  void multiply_by_dots(int64_t first, int64_t end, const OperandRows& x, float* y,
                        int64_t y_stride) const;
};

PackedMatrix describe_matrix(const KernelSet& kernels, ggml_type type, int64_t n_in, int64_t n_out);

}  // namespace forerun
