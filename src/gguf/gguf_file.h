// A GGUF model on disk: one file, or a set of split files opened as one.
//
// Opening validates everything that later code relies on, so that no damaged file
// can make ggml abort: each tensor's data lies inside its file, names are unique
// and all parts of a split are there. Immutable; safe to read from any thread.
#pragma once

#include <ggml-cpp.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mapped_file.h"
#include "gguf/metadata.h"

namespace forerun {

struct GgufTensor {
  std::string name;
  ggml_type type;
  int64_t shape[4];       // ggml's order: shape[0] is the row length
  const std::byte* data;  // in the mapped file
  size_t n_bytes;
  size_t part;    // index of the split file it lies in
  size_t offset;  // of its data in that file

  int64_t n_elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

class GgufFile {
 public:
  // `path` is a file, or the first part (…-00001-of-000NN.gguf) of a split model.
  // Throws Error.
  static GgufFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  GgufMetadata metadata() const { return GgufMetadata(contexts_.front().get()); }

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(const std::string& name) const;

  const std::vector<MappedFile>& parts() const { return parts_; }
  size_t n_bytes() const;  // of all parts

 private:
  GgufFile() = default;
  void add_part(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::vector<MappedFile> parts_;
  std::vector<gguf_context_ptr> contexts_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> tensor_index_;
};

}  // namespace forerun
