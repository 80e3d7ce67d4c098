// Hyperparameters as a file's family reads them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/config.h"
#include "support/gguf_builder.h"

namespace forerun::test {

inline ModelConfig read(const GgufBuilder& builder) {
  const GgufMetadata metadata(builder.metadata());
  return find_architecture(metadata.get_string("general.architecture").value())->config(metadata);
}

// The builder's metadata must be refused with this code and a line naming `what`.
inline void expect_refused(const GgufBuilder& builder, ErrorCode code, const std::string& what) {
  try {
    read(builder);
    FAIL() << "accepted, though it should be refused for " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(what));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

}  // namespace forerun::test
