// A small model that reads and writes bytes, for tests.
#pragma once

#include "support/gguf_builder.h"
#include "text/test_vocabularies.h"

namespace forerun {

inline test::GgufBuilder byte_model(uint32_t seed = 1) {
  test::GgufBuilder builder =
      test::tiny_model({.n_vocab = static_cast<int>(byte_pair_tokens().size()), .seed = seed});
  gguf_set_kv(builder.metadata(), make_byte_pair().get());
  return builder;
}

}  // namespace forerun
