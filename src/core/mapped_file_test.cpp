#include "core/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write_file(const std::string& content) const {
    const auto path = folder_.file("content");
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  test::TempDir folder_;
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, ReadsWhatIsThere) {
  const std::string content(3 * 4096 + 17, 'x');
  const MappedFile file(write_file(content));
  EXPECT_EQ(text_of(file), content);
  // Pages that were given back are read again when needed.
  file.release(0, content.size());
  file.release(100, 1);
  EXPECT_EQ(text_of(file), content);
}

TEST_F(MappedFileTest, LoadsWhatIsAskedFor) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const MappedFile file(write_file(std::string(3 * page + 17, 'x')));
  file.load(page + 5, 2 * page + 12);
  file.load(0, file.bytes().size() + 1);
  file.load(file.bytes().size(), 0);
  std::vector<unsigned char> in_memory(4);
  ASSERT_EQ(
      ::mincore(const_cast<std::byte*>(file.bytes().data()), file.bytes().size(), in_memory.data()), 0);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(in_memory[i] & 1);
  MappedFile(write_file("")).load(0, 0);
}

TEST_F(MappedFileTest, EmptyFile) {
  EXPECT_EQ(MappedFile(write_file("")).bytes().size(), 0u);
}

TEST_F(MappedFileTest, RefusesWhatCannotBeMapped) {
  const auto code_of = [](const std::filesystem::path& path) {
    try {
      const MappedFile file(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUnsupported;
  };
  EXPECT_EQ(code_of("/nonexistent/file"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(folder_.path()), ErrorCode::kInvalidFile);
  EXPECT_EQ(code_of("/dev/null"), ErrorCode::kInvalidFile);
}

TEST_F(MappedFileTest, Moves) {
  MappedFile first(write_file("hello"));
  const MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second), "hello");
}

}  // namespace
}  // namespace forerun
