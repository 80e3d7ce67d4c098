// The ggml graph of a forward pass of one shape, or of a stage of one, and the memory its inputs live
// in.
#pragma once

#include <ggml-cpp.h>

#include <memory>
#include <span>
#include <vector>

#include "model/cpu/visible_rows.h"
#include "model/graph_builder.h"
#include "model/kv_cache.h"
#include "model/layer_set.h"
#include "model/model.h"

namespace forerun {

// All that a graph depends on.
struct PassShape {
  int n_rows = 0;
  int n_kv = 0;             // cells attention looks at; 0 when no attention block runs
  int attention_tiles = 0;  // of our kernels on GPUs
  int n_out = 0;            // rows that something comes out of: logits, or states behind the last block
  int n_hidden = 0;
  bool has_head = true;  // whether it is logits
  LayerSet layers;
  LayerSet leaving;  // PassStage
  int begin = 0;     // the boundary where states enter
  int end = 0;       // and the last one
  std::span<const int> hidden_at;
};

// Where inputs live: one region of device memory, laid out anew for every shape, so
// that a pass uploads its inputs with one copy, or with none where the CPU can write
// them in place.
class PassInputMemory {
 public:
  // The part outlives it.
  PassInputMemory(const ModelPart& part, size_t n_bytes);

  size_t size() const { return device_memory_.size(); }
  ggml_backend_buffer_t buffer() const { return device_memory_.buffer(); }
  // Where to write the input that lies at `tensor`.
  template <typename T>
  T* host(const ggml_tensor* tensor) const {
    return reinterpret_cast<T*>(host_ + (static_cast<std::byte*>(tensor->data) - device_memory_.data()));
  }
  // Makes the first n_bytes of what was written visible to the device.
  void upload(size_t n_bytes);

 private:
  const ModelPart* part_;
  DeviceMemory device_memory_;
  DeviceMemory staging_;  // empty where the CPU writes in place
  std::byte* host_;
  ggml_context_ptr context_;
  ggml_tensor* all_ = nullptr;
};

// What the graphs of a part are made for.
struct PassContext {
  const Model& model;
  const ModelPart& part;
  const KvCache& cache;
  const PassInputMemory& memory;  // where inputs lie
  const VisibleRows& visible;     // what rows see, for our own kernels
  bool use_flash_attention;       // of ggml, where it computes
};

class PassGraph {
 public:
  // Builds the graph. What is not an input gets memory from its user.
  PassGraph(const PassContext& context, const PassShape& shape);

  // With up to `most_kv` cells.
  bool fits(const PassShape& shape, int most_kv) const;
  ggml_cgraph* graph() const { return graph_; }
  void run() { program_->run(); }
  void prepare() { program_->prepare(); }
  bool was_usual() const { return program_->was_usual(); }
  const PassInputs& inputs() const { return inputs_; }
  size_t n_input_bytes() const { return n_input_bytes_; }
  int n_kv() const { return shape_.n_kv; }
  int attention_tiles() const { return shape_.attention_tiles; }
  // [n_vocab, n_out], or without the head [n_embd, n_out]; nullptr where nothing comes out.
  ggml_tensor* out() const { return out_; }
  ggml_tensor* best() const { return best_; }  // GraphBuilder::best() of logits
  const std::vector<ggml_tensor*>& hidden() const { return hidden_; }

  // The bytes that inputs of the largest shape take.
  static size_t max_input_bytes(const ModelConfig& config, const ModelPart& part, int n_rows, int n_kv);
  // Of the states that enter, which are the first of them.
  size_t n_state_bytes() const;

 private:
  void place_inputs(const PassContext& pass);
  void build(const PassContext& pass);

  PassShape shape_;
  std::vector<int> hidden_at_;
  ggml_context_ptr context_;
  ggml_cgraph* graph_ = nullptr;
  std::unique_ptr<PassProgram> program_;
  PassInputs inputs_;
  size_t n_input_bytes_ = 0;
  ggml_tensor* out_ = nullptr;
  ggml_tensor* best_ = nullptr;
  std::vector<ggml_tensor*> hidden_;
};

}  // namespace forerun
