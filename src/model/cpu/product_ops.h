// Products with weights, and the activations between them, as graph nodes.
//
// Each computes every row by itself, in an order that the number of rows and threads
// has no part in; see kernels.h.
#pragma once

#include <memory>
#include <vector>

#include "model/cpu/activation_layout.h"
#include "model/cpu/op.h"
#include "model/cpu/packed_matrix.h"
#include "model/weights.h"

namespace forerun {

// Rows of activations as ggml's dot products want them: for types without a format.
std::unique_ptr<CpuOp> convert_op(ActivationLayout layout, ggml_type type);

// Rows of a source; which of them, I32, is the second source, if there is one.
std::unique_ptr<CpuOp> copy_rows_op();

// cap * tanh(x / cap)
std::unique_ptr<CpuOp> soft_cap_op(float cap);

// x times a number, which is the tensor's only one.
std::unique_ptr<CpuOp> scale_op(const ggml_tensor* factor);

// Activations: activation(first source) * the n numbers of the second from `first` on, in every row.
std::unique_ptr<CpuOp> gate_op(const KernelSet& kernels, GateActivation activation, int64_t first);

// What kernels call an activation.
GateActivation gate_activation(Activation activation);

// One matrix of a product and the source of the node that it is multiplied with: activations
// (ActivationLayout), or what convert_op() makes of them.
struct ProductPart {
  Linear linear;
  int source;
  int64_t first = 0;  // GatedBlocks: its first output, where the matrix has others as well
};

// Its rows of that source, as the matrix wants them.
OperandRows operand_of(const KernelSet& kernels, const ProductPart& part, const ggml_tensor* dst,
                       Range rows);
// Scale and bias of outputs [first, end) of one row; y points at the first of them.
void scale_and_bias(const Linear& linear, Range outputs, float* y);

// activation(first(x)) * second(x), the second if there are two parts: some outputs of some rows.
class GatedBlocks {
 public:
  GatedBlocks(const KernelSet& kernels, GateActivation activation, std::vector<ProductPart> parts);

  // Outputs of an MLP, from a whole block on, of the rows that `from` are; they become those from
  // `first_row` on of dst. `first_out`: where the MLP's outputs begin among those of the matrices.
  struct Part {
    Range outputs;
    Range from;
    int64_t first_row;
    int64_t first_out = 0;
  };
  void compute(ggml_tensor* dst, const ActivationLayout& layout, const Part& part) const;

 private:
  void compute_few(ggml_tensor* dst, const ActivationLayout& layout, const Part& part) const;

  const KernelSet& kernels_;
  GateActivation activation_;
  std::vector<ProductPart> parts_;
};

// The outputs of all parts one after another. The last source is a residual to add, if
// `adds_residual`.
std::unique_ptr<CpuOp> product_op(const KernelSet& kernels, std::vector<ProductPart> parts,
                                  bool adds_residual);

// Activations of them (GatedBlocks).
std::unique_ptr<CpuOp> gated_op(const KernelSet& kernels, GateActivation activation,
                                std::vector<ProductPart> parts);

}  // namespace forerun
