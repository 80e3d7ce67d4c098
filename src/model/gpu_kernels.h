// Kernels of our own on a GPU (cuda/), as the rest of the model sees them.
//
// With them a row's bits do not depend on what else is in its pass, so that text with drafts is the text
// without. Devices, models and caches that they do not serve are computed with ggml's.
#pragma once

#include <ggml-backend.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "model/config.h"
#include "model/cpu/visible_rows.h"
#include "model/kv_type.h"

namespace forerun {

class GraphBuilder;
struct GraphParts;

// A matrix on the GPU, as the kernels read it, or that of every expert, one behind the other.
struct GpuMatrix {
  ggml_type type;
  int64_t n_in;
  int64_t n_out;  // of each
  int64_t n = 1;
  std::byte* data = nullptr;
};

class GpuKernels {
 public:
  virtual ~GpuKernels() = default;

  virtual const std::string& name() const = 0;
  // Whether they compute models like that, with caches of that type.
  virtual bool serves(const ModelConfig& config, KvType kv_type) const = 0;
  virtual bool can_multiply(ggml_type type) const = 0;

  // Of a packed matrix.
  virtual size_t packed_bytes(const GpuMatrix& matrix) const = 0;
  // From rows as a file has them. Any thread may call it.
  virtual void pack(const std::byte* rows, const GpuMatrix& matrix) = 0;

  // Passes are filled up to one of few numbers of rows, which changes no bit of any row.
  virtual int filled_up(int n_rows) const = 0;
  virtual std::unique_ptr<GraphBuilder> make_builder(const GraphParts& parts) = 0;

  // What the rows of a pass see, for a graph of `n_rows` rows and lists of up to `n_listed` cells.
  virtual size_t seen_bytes(const ModelConfig& config, int n_rows, int n_listed) const = 0;
  // How wide attention is computed for such rows, which changes no bit of any row. A graph is made for
  // it.
  virtual int attention_tiles(const ModelConfig& config, KvType kv_type,
                              const VisibleRows& rows) const = 0;
  // For the rows of one text.
  virtual int attention_tiles(const ModelConfig& config, KvType kv_type, int n_rows) const = 0;
  virtual void fill_seen(const ModelConfig& config, const VisibleRows& rows, int n_listed, int n_tiles,
                         std::byte* to) const = 0;

  // Copies on the stream that computes.
  virtual void upload(void* to, std::span<const std::byte> from) = 0;
};

// nullptr: there are none for that device, or this build has none.
std::unique_ptr<GpuKernels> make_gpu_kernels(ggml_backend_dev_t device);

}  // namespace forerun
