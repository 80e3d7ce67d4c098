#include "hub/checksum.h"

#include <gtest/gtest.h>

#include <string_view>

namespace forerun {
namespace {

std::string checksum_of(Checksum::Kind kind, std::string_view text) {
  ChecksumOfBytes checksum(kind, static_cast<int64_t>(text.size()));
  for (const char& c : text) checksum.add(std::as_bytes(std::span(&c, 1)));
  return checksum.finish();
}

// As sha256sum and git hash-object print them.
TEST(Checksum, IsTheKnownOne) {
  EXPECT_EQ(checksum_of(Checksum::Kind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(checksum_of(Checksum::Kind::kSha256, ""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(checksum_of(Checksum::Kind::kGitBlob, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(checksum_of(Checksum::Kind::kGitBlob, "hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace forerun
