// Brings the tensors of a GGUF file onto a device.
//
// Use: declare every tensor the architecture has, with its shape, then load(). Those that the part of
// the model does not need are checked like the others, and get no data.
// Matrices are packed for our kernels, on CPUs and on the GPUs that those serve; what is used as the
// file has it is not copied: the tensor points into the mapped file. Everything else is copied. Packing
// and copying is done by all threads at once, and the pages that were read are given
// back, so that no weight is in memory twice.
#pragma once

#include <ggml-cpp.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf_file.h"
#include "model/cpu/packed_matrix.h"
#include "model/device.h"
#include "model/gpu_kernels.h"
#include "model/weights.h"

namespace forerun {

// Owns the tensors' memory. Tensors that point into the mapped file need the
// GgufFile to live as long.
struct WeightStorage {
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
  std::vector<std::unique_ptr<PackedMatrix>> matrices;
  std::vector<std::unique_ptr<GpuMatrix>> gpu_matrices;
  DeviceMemory packed;  // what matrices point to, unless it is in the file
};

struct ModelPart;

class WeightLoader {
 public:
  // Of a part without weights, which outlives it.
  WeightLoader(const GgufFile& file, const ModelPart& part);

  // A tensor that must be there, of exactly this shape. Throws Error otherwise.
  ggml_tensor* vector(const std::string& name, int64_t n);
  Linear matrix(const std::string& name, int64_t n_in, int64_t n_out);
  // nullptr if the file has no tensor of that name.
  ggml_tensor* optional_vector(const std::string& name, int64_t n);
  // <name>.weight, and <name>.bias and <name>.scale if they are there.
  Linear linear(const std::string& name, int64_t n_in, int64_t n_out);
  // The same for few outputs that decide something. Where our kernels on GPUs are for it the weights are
  // a tensor of F32, whatever the file has.
  Linear decisive_linear(const std::string& name, int64_t n_in, int64_t n_out);
  Linear decisive_matrix(const std::string& name, int64_t n_in, int64_t n_out);
  // <name>.weight of n matrices, and <name>.bias if it is there. On CPUs they become one matrix of all
  // their rows.
  Linear stack(const std::string& name, int64_t n_in, int64_t n_out, int64_t n);
  // The first (0) or second (1) n_out rows of a matrix of twice as many.
  Linear half(const std::string& name, int which, int64_t n_in, int64_t n_out);
  // A tensor of one number that no file has.
  ggml_tensor* constant(float value);
  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }
  // Of a matrix; 0: there is none.
  int64_t n_rows(const std::string& name) const;

  // Of what load() reads.
  size_t n_bytes() const;
  // Fills every declared tensor. `progress` gets the share done, from this thread;
  // may be empty. Throws Error{kOutOfMemory}.
  WeightStorage load(const std::function<void(double)>& progress);

 private:
  struct Copy {
    const GgufTensor* source;
    ggml_tensor* target;
  };
  struct Packing {
    const GgufTensor* source;
    PackedMatrix* target;
  };
  // Work for one thread: reads the bytes [offset, offset + n_bytes) of a tensor.
  struct Job {
    const GgufTensor* source;
    size_t offset;
    size_t n_bytes;
    std::function<void()> run;
  };
  // `n`: matrices that lie one behind the other, for our kernels on GPUs.
  Linear matrix_of(const GgufTensor& source, int64_t n_in, int64_t n_out, int64_t n = 1);
  Linear with_scale_and_bias(Linear linear, const std::string& name, int64_t n_out);
  const GgufTensor& require(const std::string& name) const;
  ggml_tensor* numbers(const GgufTensor& source);  // as F32
  ggml_tensor* declare(const GgufTensor& source, ggml_type type);
  void map_in_place(WeightStorage& storage);
  void allocate_copies(WeightStorage& storage);
  void add_copy_jobs(std::vector<Job>& jobs) const;
  // Give packed matrices their memory.
  void add_pack_jobs(WeightStorage& storage, std::vector<Job>& jobs) const;
  void add_gpu_jobs(WeightStorage& storage, std::vector<Job>& jobs) const;
  void run_all(std::vector<Job> jobs, const std::function<void(double)>& progress) const;

  const GgufFile& file_;
  const ModelPart& part_;
  const Device& device_;  // the part's
  GpuKernels* gpu_;
  ggml_context_ptr mapped_context_;  // of tensors that need no memory of their own
  ggml_context_ptr copied_context_;
  std::deque<GgufTensor> views_;  // parts and other shapes of tensors of the file
  std::map<float, ggml_tensor*> constants_;
  std::vector<Copy> mapped_;
  std::vector<Copy> copied_;
  std::vector<Packing> packed_;
  std::vector<std::pair<PackedMatrix*, const ggml_tensor*>> plain_;  // read as the file has them
  std::vector<std::unique_ptr<PackedMatrix>> matrices_;
  std::vector<const GgufTensor*> gpu_sources_;
  std::vector<std::unique_ptr<GpuMatrix>> gpu_matrices_;  // made of these
};

}  // namespace forerun
