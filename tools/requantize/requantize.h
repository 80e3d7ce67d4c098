// Stores a model's matrices in another weight type.
//
// PyPI's gguf package writes only the simple types; this uses ggml's quantisers, so
// that a model of every type ggml can multiply with can be made for tests.
#pragma once

#include <ggml.h>

#include <filesystem>
#include <string_view>

namespace forerun {

struct RequantizeOptions {
  ggml_type type = GGML_TYPE_Q8_0;
  bool keep_head = false;  // leave the token embedding and the output matrix as they are
};

// The type called `name` ("q4_k", "F16", in any case). Throws Error when there is no
// such type or weights cannot be stored in it.
ggml_type parse_weight_type(std::string_view name);

// Reads `in` (the first part of a split model will do) and writes one file, `out`.
// Matrices become `options.type`; vectors stay F32, as every program expects. All keys
// are kept but those that describe a split or the old type. A type that wants an
// importance matrix gets a uniform one. Memory: one tensor in F32 and its result.
// Throws Error, and then leaves no incomplete `out` behind.
void requantize(const std::filesystem::path& in, const std::filesystem::path& out,
                const RequantizeOptions& options);

}  // namespace forerun
