#include "core/replace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/error.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(ReplaceFile, TakesThePlaceOfWhatWasThere) {
  const test::TempDir folder;
  const auto path = folder.file("file");
  for (const std::string& text : {std::string("first"), std::string(100000, 'x'), std::string()}) {
    EXPECT_EQ(replace_file(path, text), Replaced::kDurable);
    EXPECT_EQ(contents(path), text);
  }
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("file"));
}

TEST(ReplaceFile, IsWrittenInAnyOrder) {
  const test::TempDir folder;
  const auto path = folder.file("file");
  replace_file(path, "old");
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  ReplacementFile file(path);
  file.append(bytes("....."));
  file.append(bytes("end"));
  file.write_at(1, bytes("mid"));
  EXPECT_EQ(contents(path), "old") << "until it is whole";
  file.finish();
  EXPECT_EQ(contents(path), ".mid.end");
}

TEST(ReplaceFile, LeavesNothingBehindUnlessFinished) {
  const test::TempDir folder;
  const auto path = folder.file("file");
  replace_file(path, "old");
  {
    ReplacementFile file(path);
    file.append(std::as_bytes(std::span("new")));
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("file"));
}

TEST(ReplaceFile, FollowsLinksAndLeavesDevicesAlone) {
  const test::TempDir folder;
  replace_file(folder.file("file"), "old");
  std::filesystem::create_symlink("file", folder.file("link"));
  replace_file(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(contents(folder.file("file")), "new");
  std::filesystem::create_symlink("/dev/null", folder.file("nothing"));
  EXPECT_THROW(replace_file(folder.file("nothing"), "text"), Error);
  EXPECT_THROW(replace_file(folder.path(), "text"), Error);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(ReplaceFile, FailsWithTheReason) {
  const test::TempDir folder;
  const auto path = folder.file("file");
  replace_file(path, "old");
  const auto error_of = [](const std::filesystem::path& target, const std::string& text) {
    try {
      replace_file(target, text);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(target.string()));
      return error.code();
    }
    return ErrorCode::kUnsupported;
  };
  EXPECT_EQ(error_of(folder.file("none") / "file", "new"), ErrorCode::kIo);
  EXPECT_EQ(error_of(folder.path(), "new"), ErrorCode::kIo) << "a folder";
  {
    const test::FileSizeLimit limit(1000);
    EXPECT_EQ(error_of(path, std::string(2000, 'x')), ErrorCode::kIo);
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("file"));
}

}  // namespace
}  // namespace forerun
