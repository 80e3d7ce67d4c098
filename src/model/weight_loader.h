// Brings the tensors of a GGUF file onto a device.
//
// Use: declare every tensor the architecture has, with its shape, then load().
// Matrices go into the layout the device multiplies fastest from. Where that is the
// plain layout of the file and the device can read the page cache (CPUs), nothing is
// copied: the tensor points into the mapped file. Everything else is copied by all
// threads at once, and the pages it was read from are given back.
#pragma once

#include <ggml-cpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "model/device.h"
#include "model/weights.h"

namespace forerun {

// Owns the tensors' memory. Tensors that point into the mapped file need the
// GgufFile to live as long.
struct WeightStorage {
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
};

class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, const Device& device);

  // A tensor that must be there, of exactly this shape. Throws Error otherwise.
  ggml_tensor* vector(const std::string& name, int64_t n);
  ggml_tensor* matrix(const std::string& name, int64_t n_in, int64_t n_out);
  // nullptr if the file has no tensor of that name.
  ggml_tensor* optional_vector(const std::string& name, int64_t n);
  // <name>.weight, and <name>.bias and <name>.scale if they are there.
  Linear linear(const std::string& name, int64_t n_in, int64_t n_out);
  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // Fills every declared tensor. `progress` gets the share done, from this thread;
  // may be empty. Throws Error{kOutOfMemory}.
  WeightStorage load(const std::function<void(double)>& progress);

 private:
  struct Copy {
    const GgufTensor* source;
    ggml_tensor* target;
  };
  const GgufTensor& require(const std::string& name) const;
  ggml_tensor* declare(const GgufTensor& source, ggml_type type, ggml_backend_buffer_type_t layout);
  ggml_context* context_of(ggml_backend_buffer_type_t layout);
  void map_in_place(WeightStorage& storage);
  void copy_all(const std::function<void(double)>& progress);

  const GgufFile& file_;
  const Device& device_;
  std::map<ggml_backend_buffer_type_t, ggml_context_ptr> contexts_;  // of tensors to be copied
  ggml_context_ptr mapped_context_;
  std::vector<Copy> mapped_;
  std::vector<Copy> copied_;
};

}  // namespace forerun
