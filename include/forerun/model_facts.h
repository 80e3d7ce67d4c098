// What there is to know of a model that is loaded.
#pragma once

#include <forerun/pooling.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace forerun {

struct ModelFacts {
  std::filesystem::path path;
  std::string name;          // as the file has it; may be empty
  std::string architecture;  // "llama"
  uint64_t fingerprint;      // of the weights: the same wherever the file lies
  int64_t n_parameters;
  int64_t n_bytes;
  int n_embd;
  int n_layers;
  int n_vocab;
  int n_context_trained;           // tokens that it was trained for
  std::optional<Pooling> pooling;  // that vectors of texts are made with, where the file says so
};

}  // namespace forerun
