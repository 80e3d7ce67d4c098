// A small model that reads and writes bytes, for tests.
#pragma once

#include "support/gguf_builder.h"
#include "text/test_vocabularies.h"

namespace forerun {

inline test::GgufBuilder byte_model() {
  test::GgufBuilder builder = test::tiny_model({.n_vocab = static_cast<int>(byte_pair_tokens().size())});
  gguf_set_kv(builder.metadata(), make_byte_pair().get());
  return builder;
}

}  // namespace forerun
