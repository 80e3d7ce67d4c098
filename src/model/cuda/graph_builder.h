// Graphs of our own CUDA kernels. Ten nodes to a layer: add and norm, project, heads, attend, merge,
// project; add and norm, gate and up, activate, project. Of a mixture, behind the norm: scores, routes,
// the rows of experts where they are gathered, gate and up, activate, project, combine.
//
// A product leaves parts of sums, which the node behind it adds (product.h). So the states that
// contribute() returns are not there yet: the next norm adds them up.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/cuda/attention.h"
#include "model/cuda/experts.h"
#include "model/cuda/op.h"
#include "model/cuda/rows.h"
#include "model/cuda/seen_layout.h"
#include "model/cuda/stream.h"
#include "model/graph_builder.h"

namespace forerun::cuda {

class CudaGraphBuilder final : public GraphBuilder {
 public:
  CudaGraphBuilder(const GraphParts& parts, Stream& stream);

  ggml_tensor* queries(int layer, ggml_tensor* states) override;
  ggml_tensor* attend(int layer, ggml_tensor* queries) override;
  ggml_tensor* gated(const MlpWeights& mlp, ggml_tensor* states) override;
  ggml_tensor* contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                          ggml_tensor* states) override;
  ggml_tensor* mixture(const MlpWeights& mlp, ggml_tensor* states) override;
  ggml_tensor* head(ggml_tensor* states) override;
  ggml_tensor* best(ggml_tensor* logits) override;
  ggml_tensor* copy_rows(ggml_tensor* states, ggml_tensor* rows) override;
  std::unique_ptr<PassProgram> finish() override;

 private:
  // The outputs of one matrix of a product.
  struct Output {
    ggml_tensor* product;
    Matrix matrix;  // of the product
    int first;      // among its outputs
    int n;
    const ggml_tensor* scale;
    const ggml_tensor* bias;
    int bias_first = 0;  // where it begins for the first output
    Segment segment() const;
  };
  // States that are `base` and, if there is a product, what it adds.
  struct States {
    ggml_tensor* base;
    std::optional<Output> added;
    std::vector<ggml_tensor*> sources() const;
    Segment segment() const { return added ? added->segment() : Segment{}; }
  };
  States states_of(ggml_tensor* tensor) const;

  // Where an operand lies in what a node computes.
  struct OperandPlace {
    size_t start;
    int64_t n_inputs;
    Operand in(ggml_tensor* node) const;
  };

  // Adds up the states and norms them, as the operand of products with these.
  ggml_tensor* activations(const Norm& norm, ggml_tensor* states, const std::vector<Linear>& readers);
  // Their products, those together whose matrices lie together.
  std::vector<Output> multiply(const std::vector<Linear>& linears, ggml_tensor* operand);
  // A node that has an operand of products, and no more behind it.
  ggml_tensor* add_operand(const OperandPlace& place, int n_rows, std::vector<ggml_tensor*> sources,
                           Launch launch);
  // What gated() returns, of the operand of its products.
  ggml_tensor* gated_of(const MlpWeights& mlp, ggml_tensor* x);
  Gate gate() const;

  // A mixture in a graph (graph_mixture.cpp): nodes of scores, of Routing, and of the operands of items.
  struct Mixture {
    const ExpertWeights& experts;
    ExpertsShape shape;
    ggml_tensor* scores = nullptr;
    int n_scores = 0;
    ggml_tensor* routing = nullptr;
  };
  // The outputs of one matrix of every expert, by route.
  struct ExpertOutput {
    ggml_tensor* product;
    ExpertMatrices matrices;
    ExpertsShape shape;
    int which;  // of the matrices
    int n;
    Segment segment() const;
  };
  // An operand of experts: of items, or the one of the rows.
  struct ExpertInput {
    ggml_tensor* node;
    OperandPlace place;
    bool is_of_items;
  };
  void choose_experts(Mixture& mixture, ggml_tensor* x);
  ExpertInput gathered(const Mixture& mixture, ggml_tensor* x);
  std::vector<ExpertOutput> multiply_experts(const Mixture& mixture, const std::vector<Linear>& stacks,
                                             const ExpertInput& x);
  ExpertInput gated_experts(const Mixture& mixture, const ExpertInput& x);
  ggml_tensor* rope_table(int layer);
  std::function<AttentionWork(ggml_tensor* partials)> attention_work(int layer) const;

  Stream& stream_;
  CudaOps ops_;
  SeenLayout seen_;
  std::unordered_map<const ggml_tensor*, States> states_;  // that are not added up yet, or elsewhere
  std::unordered_map<const ggml_tensor*, OperandPlace> operands_;
  ggml_tensor* rope_table_ = nullptr;
  ggml_tensor* window_rope_table_ = nullptr;
};

}  // namespace forerun::cuda
