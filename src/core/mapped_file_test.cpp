#include "core/mapped_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace forerun {
namespace {

std::filesystem::path write_file(const std::string& content) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "forerun_mapped_file_test";
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ReadsWhatIsThere) {
  const std::string content(3 * 4096 + 17, 'x');
  const MappedFile file(write_file(content));
  EXPECT_EQ(text_of(file), content);
  // Pages that were given back are read again when needed.
  file.release(0, content.size());
  file.release(100, 1);
  EXPECT_EQ(text_of(file), content);
}

TEST(MappedFile, EmptyFile) {
  EXPECT_EQ(MappedFile(write_file("")).bytes().size(), 0u);
}

TEST(MappedFile, RefusesWhatCannotBeMapped) {
  const auto code_of = [](const std::filesystem::path& path) {
    try {
      const MappedFile file(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUnsupported;
  };
  EXPECT_EQ(code_of("/nonexistent/file"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(::testing::TempDir()), ErrorCode::kInvalidFile);
  EXPECT_EQ(code_of("/dev/null"), ErrorCode::kInvalidFile);
}

TEST(MappedFile, Moves) {
  MappedFile first(write_file("hello"));
  const MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second), "hello");
}

}  // namespace
}  // namespace forerun
