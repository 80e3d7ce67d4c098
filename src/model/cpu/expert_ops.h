// Mixtures of experts as graph nodes.
//
// The rows of a pass choose their experts; those that chose the same one lie together then and share the
// reads of its weights. A row's place among others decides nothing about its bits: products do not
// depend on that (kernels.h), and what its experts make of it is added in the order of its own choice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/cpu/product_ops.h"

namespace forerun {

// One of a row's experts, and the part it has.
struct Route {
  int32_t expert;
  float share;
};

// The routes of a row by what the router says of each expert, which it overwrites: those it uses, the
// best first. `preference` may be nullptr.
void choose_experts(const ExpertsConfig& config, std::span<float> scores, const float* preference,
                    std::span<Route> routes);

// Rows by expert. Each of an expert's rows has a slot; the slots of an expert begin with a bundle of
// rows (ActivationLayout). A tensor of I32.
class ExpertGroups {
 public:
  struct Shape {
    int64_t n_rows;
    int n_used;
    int n_experts;
    int rows_together;

    int64_t n_routes() const { return n_rows * n_used; }
    int64_t most_groups() const { return n_routes() < n_experts ? n_routes() : n_experts; }
    int64_t most_slots() const { return n_routes() + most_groups() * (rows_together - 1); }
    int64_t n_numbers() const { return 1 + 3 * most_groups() + most_slots() + n_routes(); }
  };
  struct Group {
    int32_t expert;
    int32_t first_slot;
    int32_t n_rows;
  };

  ExpertGroups(const Shape& shape, int32_t* data) : shape_(shape), data_(data) {}
  void fill(std::span<const Route> routes);

  int64_t n_groups() const { return data_[0]; }
  Group group(int64_t i) const { return reinterpret_cast<const Group*>(data_ + 1)[i]; }
  // -1: nobody's.
  int32_t row_of_slot(int64_t slot) const { return rows()[slot]; }
  int32_t slot_of(int64_t row, int rank) const { return slots()[row * shape_.n_used + rank]; }

 private:
  int32_t* rows() const { return data_ + 1 + 3 * shape_.most_groups(); }
  int32_t* slots() const { return rows() + shape_.most_slots(); }

  Shape shape_;
  int32_t* data_;
};

// Rows of Route; the source has what the router says.
std::unique_ptr<CpuOp> route_op(const ExpertsConfig& config, const ExpertWeights& experts);
// ExpertGroups of routes.
std::unique_ptr<CpuOp> group_op(const ExpertGroups::Shape& shape);
// The activations of slots; sources: those of rows, groups and, where they are weighed with their share,
// routes.
std::unique_ptr<CpuOp> gather_op(const KernelSet& kernels, const ExpertGroups::Shape& shape, int64_t n);
// Activations of slots (GatedBlocks), n_ff for each; the last source are the groups. `is_gathered`:
// whether what they are made of has slots, too. A single row need not have them: its activations serve
// all groups.
std::unique_ptr<CpuOp> expert_gated_op(const KernelSet& kernels, GateActivation activation,
                                       const ExpertGroups::Shape& shape, int64_t n_ff,
                                       std::vector<ProductPart> parts, bool is_gathered);
// F32 [n_out, slots]; the last source are the groups.
std::unique_ptr<CpuOp> expert_product_op(const KernelSet& kernels, const ExpertGroups::Shape& shape,
                                         const ProductPart& part);
// states + scale * (shares of what experts made + shared); sources: slots, routes, groups, states if
// they are added, and what the MLP that all use made, if there is one, with the logit of its share, if
// it has one.
// `weighs`: whether experts have shares of what they made.
std::unique_ptr<CpuOp> combine_op(const ExpertGroups::Shape& shape, float scale, bool weighs);

}  // namespace forerun
