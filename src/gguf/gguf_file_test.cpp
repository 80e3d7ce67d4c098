#include "gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "core/error.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using test::GgufBuilder;
using ::testing::HasSubstr;

class GgufFileTest : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name = "model.gguf") const { return dir_.file(name); }

  // Opening must fail with this code and one line that contains `what`.
  void expect_refused(const std::filesystem::path& file, ErrorCode code, const std::string& what) {
    try {
      GgufFile::open(file);
      FAIL() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(what));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }

  // A file with a few keys and two tensors, "a" (2 x 3) and "b" (5).
  static GgufBuilder small() {
    GgufBuilder builder;
    builder.set("general.architecture", "llama").set("some.number", 7u);
    const float a[6] = {1, 2, 3, 4, 5, 6};
    const float b[5] = {7, 8, 9, 10, 11};
    builder.add_floats("a", {2, 3}, a);
    builder.add_floats("b", {5}, b);
    return builder;
  }

  // Writes a three-part model whose parts hold one tensor each.
  void write_split(const std::vector<std::pair<uint16_t, std::string>>& parts, int n_tensors = 3) const {
    for (const auto& [number, tensor] : parts) {
      GgufBuilder builder;
      gguf_set_val_u16(builder.metadata(), "split.no", number);
      gguf_set_val_u16(builder.metadata(), "split.count", 3);
      gguf_set_val_i32(builder.metadata(), "split.tensors.count", n_tensors);
      const float value[1] = {static_cast<float>(number)};
      builder.add_floats(tensor, {1}, value);
      builder.write(part(number));
    }
  }
  std::filesystem::path part(int number) const {
    return path("m-0000" + std::to_string(number + 1) + "-of-00003.gguf");
  }

  test::TempDir dir_;
};

TEST_F(GgufFileTest, ReadsTensorsAndMetadata) {
  small().write(path());
  const GgufFile file = GgufFile::open(path());
  EXPECT_EQ(file.path(), path());
  EXPECT_EQ(file.metadata().get_int("some.number"), 7);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.n_bytes(), std::filesystem::file_size(path()));
  const GgufTensor* a = file.find_tensor("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, GGML_TYPE_F32);
  EXPECT_EQ(a->shape[0], 2);
  EXPECT_EQ(a->shape[1], 3);
  EXPECT_EQ(a->shape[2], 1);
  EXPECT_EQ(a->n_bytes, 6 * sizeof(float));
  float values[6];
  std::memcpy(values, a->data, sizeof(values));
  EXPECT_THAT(values, ::testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(file.find_tensor("c"), nullptr);
}

TEST_F(GgufFileTest, StaysValidWhenMoved) {
  small().write(path());
  GgufFile file = GgufFile::open(path());
  const std::byte* data = file.find_tensor("b")->data;
  const GgufFile moved = std::move(file);
  EXPECT_EQ(moved.find_tensor("b")->data, data);
  EXPECT_EQ(moved.metadata().get_int("some.number"), 7);
}

TEST_F(GgufFileTest, WhatIsNoGgufIsRefused) {
  expect_refused(path("none.gguf"), ErrorCode::kNotFound, "no such file");
  expect_refused(dir_.path(), ErrorCode::kInvalidFile, "directory");
  expect_refused("/dev/null", ErrorCode::kInvalidFile, "not a regular file");
  test::write_file(path(), {});
  expect_refused(path(), ErrorCode::kInvalidFile, "not a GGUF file");
  const std::string text = "Once upon a time there was a text file.";
  test::write_file(path(), std::as_bytes(std::span(text)));
  expect_refused(path(), ErrorCode::kInvalidFile, "not a GGUF file");
}

TEST_F(GgufFileTest, UnsupportedVersionsAreRefused) {
  small().write(path());
  auto bytes = test::read_file(path());
  const auto with = [&](uint32_t version) {
    std::memcpy(bytes.data() + 4, &version, sizeof(version));
    test::write_file(path(), bytes);
    return path();
  };
  for (const uint32_t version : {0u, 1u, 0x03000000u}) {
    expect_refused(with(version), ErrorCode::kInvalidFile, "damaged");
  }
  for (const uint32_t version : {4u, 99u, UINT32_MAX}) {
    expect_refused(with(version), ErrorCode::kUnsupported, "a newer version of forerun");
  }
}

TEST_F(GgufFileTest, TruncatedAtEveryByte) {
  small().write(path());
  const auto bytes = test::read_file(path());
  const GgufFile whole = GgufFile::open(path());
  const GgufTensor& last = whole.tensors().back();
  const size_t needed = last.offset + last.n_bytes;  // the rest is padding
  ASSERT_GT(needed, 200u);
  for (size_t n = 0; n < needed; ++n) {
    SCOPED_TRACE(n);
    test::write_file(path("cut.gguf"), std::span(bytes).first(n));
    expect_refused(path("cut.gguf"), ErrorCode::kInvalidFile, "cut.gguf");
  }
  test::write_file(path("cut.gguf"), std::span(bytes).first(needed));
  EXPECT_NO_THROW(GgufFile::open(path("cut.gguf")));
}

TEST_F(GgufFileTest, TensorsThatOverlapOrLeaveTheFileAreRefused) {
  small().write(path());
  const auto bytes = test::read_file(path());
  // The offset of "b" is the last field of the header: find it from its name.
  const size_t at = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())
                        .find(std::string("\1\0\0\0\0\0\0\0b", 9)) +
                    9 + sizeof(uint32_t) + sizeof(int64_t) + sizeof(uint32_t);
  uint64_t offset = 0;
  std::memcpy(&offset, bytes.data() + at, sizeof(offset));
  ASSERT_EQ(offset, 32u);
  for (const uint64_t wrong :
       {uint64_t{0}, uint64_t{16}, uint64_t{1} << 20, UINT64_MAX - 31, UINT64_MAX}) {
    auto changed = bytes;
    std::memcpy(changed.data() + at, &wrong, sizeof(wrong));
    test::write_file(path("changed.gguf"), changed);
    expect_refused(path("changed.gguf"), ErrorCode::kInvalidFile, "changed.gguf");
  }
}

TEST_F(GgufFileTest, SplitModelsOpenAsOne) {
  write_split({{0, "x"}, {1, "y"}, {2, "z"}});
  const GgufFile file = GgufFile::open(part(0));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.parts().size(), 3u);
  EXPECT_EQ(file.find_tensor("z")->part, 2u);
  float value = 0;
  std::memcpy(&value, file.find_tensor("z")->data, sizeof(value));
  EXPECT_EQ(value, 2.0f);
}

TEST_F(GgufFileTest, SplitModelsWithSomethingWrongAreRefused) {
  write_split({{0, "x"}, {1, "y"}, {2, "z"}});
  expect_refused(part(1), ErrorCode::kInvalidFile, "not the first part");

  std::filesystem::copy_file(part(0), path("renamed.gguf"));
  expect_refused(path("renamed.gguf"), ErrorCode::kInvalidFile, "-00001-of-00003.gguf");

  std::filesystem::rename(part(1), path("away"));
  expect_refused(part(0), ErrorCode::kNotFound, "m-00002-of-00003.gguf");

  std::filesystem::copy_file(part(2), part(1));
  expect_refused(part(0), ErrorCode::kInvalidFile, "is not part 2");

  std::filesystem::remove(part(1));
  small().write(part(1));
  expect_refused(part(0), ErrorCode::kInvalidFile, "is not part 2");

  write_split({{0, "x"}, {1, "x"}, {2, "z"}});
  expect_refused(part(0), ErrorCode::kInvalidFile, "tensor x appears twice");

  write_split({{0, "x"}, {1, "y"}, {2, "z"}}, /*n_tensors=*/4);
  expect_refused(part(0), ErrorCode::kInvalidFile, "4 tensors expected");
}

TEST_F(GgufFileTest, SenselessSplitCountsAreRefused) {
  auto builder = small();
  gguf_set_val_u16(builder.metadata(), "split.count", 60000);
  builder.write(path());
  expect_refused(path(), ErrorCode::kInvalidFile, "split.count");
  gguf_set_val_str(builder.metadata(), "split.count", "three");
  builder.write(path());
  expect_refused(path(), ErrorCode::kInvalidFile, "split.count");
}

TEST_F(GgufFileTest, MutatedHeadersOpenOrThrow) {
  small().write(path());
  const auto bytes = test::read_file(path());
  const size_t n_header = GgufFile::open(path()).tensors().front().offset;
  std::mt19937 random(7);
  int n_refused = 0;
  for (int i = 0; i < 2000; ++i) {
    auto changed = bytes;
    const size_t at = random() % n_header;
    const size_t width = std::min<size_t>(size_t{1} << random() % 4, n_header - at);
    const uint64_t values[] = {0, 1, 0x7f, 0xff, 0xffff, UINT32_MAX, INT64_MAX, UINT64_MAX, random()};
    std::memcpy(changed.data() + at, &values[random() % std::size(values)], width);
    test::write_file(path("changed.gguf"), changed);
    try {
      const GgufFile file = GgufFile::open(path("changed.gguf"));
      for (const std::string& key : file.metadata().keys()) file.metadata().describe(key);
      for (const GgufTensor& tensor : file.tensors()) {
        ASSERT_LE(tensor.offset + tensor.n_bytes, bytes.size());
      }
    } catch (const Error&) {
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 500) << "most of these changes do damage";
}

}  // namespace
}  // namespace forerun
