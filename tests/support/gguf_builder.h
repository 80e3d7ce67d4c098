// Makes GGUF files for tests, from nothing or from another file.
//
// What is built need not make sense: tests ask for damaged files too.
#pragma once

#include <ggml-cpp.h>
#include <gguf.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace forerun::test {

class GgufBuilder {
 public:
  GgufBuilder();
  GgufBuilder(const GgufBuilder& other);
  GgufBuilder(GgufBuilder&&) = default;
  GgufBuilder& operator=(GgufBuilder&&) = default;

  // The metadata, to be set with ggml's own functions (gguf_set_val_u32, ...).
  gguf_context* metadata() const { return gguf_.get(); }
  GgufBuilder& set(const std::string& key, uint32_t value);
  GgufBuilder& set(const std::string& key, float value);
  GgufBuilder& set(const std::string& key, const std::string& value);
  GgufBuilder& remove(const std::string& key);

  // Tensors are written in the order of their first mention; naming one again
  // replaces it. `data` is as the type stores it.
  void add_tensor(const std::string& name, ggml_type type, const std::vector<int64_t>& shape,
                  std::vector<std::byte> data);
  void add_floats(const std::string& name, const std::vector<int64_t>& shape,
                  std::span<const float> values);
  void remove_tensor(const std::string& name);

  void write(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    std::string name;
    ggml_type type;
    std::vector<int64_t> shape;
    std::vector<std::byte> data;
  };
  gguf_context_ptr gguf_;
  std::vector<Tensor> tensors_;
};

// A model with random weights in F32, small enough to be built, loaded and run in a
// millisecond. What each architecture needs (biases, norms of heads, windows) is in it.
struct TinyModelSpec {
  std::string architecture = "llama";
  int n_layers = 2;
  int n_embd = 32;
  int n_heads = 2;
  int n_kv_heads = 1;
  int head_dim = 16;
  int n_ff = 48;
  int n_vocab = 50;
  uint32_t seed = 1;
};
GgufBuilder tiny_model(const TinyModelSpec& spec = {});

// A tensor as it is in a file. copy_gguf's callback may change its type and data; the
// shape stays.
struct StoredTensor {
  const std::string& name;
  const std::vector<int64_t>& shape;
  ggml_type type;
  std::vector<std::byte> data;
};
// Writes a copy of the GGUF `from` (a split model becomes one file) to `to`, each
// tensor as `change` leaves it.
void copy_gguf(const std::filesystem::path& from, const std::filesystem::path& to,
               const std::function<void(StoredTensor&)>& change);
// The same model with its tensors in reverse order: another one by its fingerprint, so that it
// may draft for the first, and equal to it in every bit it computes.
void write_twin(const std::filesystem::path& from, const std::filesystem::path& to);
// A copy_gguf callback: numbers of any type to F32.
void to_f32(StoredTensor& tensor);

std::vector<std::byte> read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace forerun::test
