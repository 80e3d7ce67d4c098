// Mixtures of experts: MLPs of which each row of a pass uses a few.
//
// Rows choose; what one row has with one of its experts is a route. Routes are grouped into items,
// columns for an expert whose weights they read together. A row's bits depend neither on its column nor
// on who has the others: the order of sums belongs to each expert's matrix (product.h), and what its
// experts make of a row is added in the order of its own choice.
//
// Who chose what is known on the device alone, so that a captured pass serves any rows: kernels are
// launched for as many items as there may be, and blocks of those that nobody has end at once.
#pragma once

#include <array>
#include <vector>

#include "model/config.h"
#include "model/cuda/product.h"
#include "model/cuda/rows.h"

namespace forerun::cuda {

struct ExpertsShape {
  int n_rows;
  int n_used;
  int n_experts;

  // Route r * n_used + i is that of row r with the i-th expert of its choice.
  int n_routes() const { return n_rows * n_used; }
  // Of few rows every item has all, each in its own column: these are read as they are. Of more they are
  // gathered for each item.
  bool is_gathered() const;
  int width() const;  // columns of an item: as many as operands may have rows
  int most_items() const;
};

// The routes of a pass, on the device.
struct Routing {
  float* shares;     // [route]: how much the row takes of what its expert makes
  int32_t* places;   // [route]: item * width + column
  int32_t* experts;  // [item]; -1: nobody's
  int32_t* columns;  // [item][column]: the route; -1: nobody's
};
int64_t routing_numbers(const ExpertsShape& shape);  // of 4 bytes each
Routing routing_at(const ExpertsShape& shape, void* data);

// A matrix of few outputs, as F32.
struct FloatMatrix {
  const float* weights = nullptr;  // [output][input]
  const float* scale = nullptr;    // [1], or none
  const float* bias = nullptr;     // [output], or none
};
// What a row says of experts, and how much it wants of the MLP that all rows use where `shared`, of one
// output, has weights: [row][expert, then that].
struct ScoresWork {
  Operand x;
  FloatMatrix router;
  FloatMatrix shared;
  int n_in;
  int n_experts;
  int n_rows;
  float* scores;

  __host__ __device__ int n_scores() const { return n_experts + (shared.weights != nullptr ? 1 : 0); }
};
void score_experts(const ScoresWork& work, cudaStream_t stream);

// Rows of scores to routes, by the rule of choose_experts() (cpu/expert_ops.h).
struct RoutingWork {
  ExpertsShape shape;
  const float* scores;  // [row][n_scores]
  int n_scores;
  const float* preference;  // [expert], or none
  ExpertGating gating;
  bool normalises;
  float scale;
  Routing routing;
};
void route(const RoutingWork& work, cudaStream_t stream);

// The rows of items, where they are gathered: `to` has the width of items, one behind the other.
void gather(const ExpertsShape& shape, const Routing& routing, const Operand& x, const Operand& to,
            cudaStream_t stream);
// Room for the operands of all items.
int64_t item_halves(const ExpertsShape& shape, int64_t n_inputs);

// Matrices that the same rows are multiplied with, one or two of the same shape and type for every
// expert.
struct ExpertMatrices {
  Matrix one;                              // an expert's
  std::array<const std::byte*, 2> data{};  // those of all experts, one behind the other
  int n = 1;
  int n_used = 1;  // experts of a row

  // Of each matrix; for one row all runs together are about as many blocks as there is room for.
  Cut cut() const;
  // Whether a block has a group of runs, so that fewer parts are left of many rows.
  bool adds_runs(const ExpertsShape& shape) const;
  int64_t matrix_floats(const ExpertsShape& shape) const;  // of parts
};
// x: the operands of items, or of all rows where these are not gathered yet. parts: room for
// n * matrix_floats().
struct ExpertOperand {
  Operand x;
  bool is_of_items;
};
void multiply_experts(const ExpertMatrices& matrices, const ExpertsShape& shape, const Routing& routing,
                      const ExpertOperand& x, float* parts, cudaStream_t stream);
// Of a matrix; its rows are routes.
Parts expert_parts(const ExpertMatrices& matrices, const ExpertsShape& shape, int matrix,
                   const float* parts);

// sum = states + scale * (shares of what experts made of the row + shared).
struct CombineWork {
  const float* states;
  Segment made;  // by route
  const float* shares;
  int n_used;
  Segment shared;              // by row; may have no parts
  const float* shared_logits;  // how much of that, one for each row, or none: all of it
  int shared_stride;           // from row to row
  float scale;
  RowsShape shape;
  float* sum;
};
void combine(const CombineWork& work, cudaStream_t stream);

}  // namespace forerun::cuda
