#include "retrieval/store/sssd_index.h"

#include <gtest/gtest.h>

#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;

template <typename Number>
void put(std::string& file, Number value) {
  file.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A file of these chunks, as the library writes it.
template <typename Stored>
std::string index_of(const std::vector<std::vector<uint32_t>>& chunks) {
  std::string file;
  if (sizeof(Stored) == 4) put(file, int32_t{0});
  for (const auto& chunk : chunks) {
    put(file, static_cast<uint32_t>(chunk.size() * sizeof(Stored)));
    for (const uint32_t id : chunk) put(file, static_cast<Stored>(id));
    put(file, static_cast<uint32_t>(chunk.size() * sizeof(int32_t)));
    for (size_t i = 0; i < chunk.size(); ++i) put(file, static_cast<int32_t>(i));
  }
  return file;
}

class SssdIndexTest : public testing::Test {
 protected:
  std::vector<std::vector<int>> read(const std::string& contents, int n_vocab) {
    write_text(path_, contents);
    SssdIndex index(path_, n_vocab);
    std::vector<std::vector<int>> chunks;
    while (const auto chunk = index.next_chunk()) {
      chunks.emplace_back();
      for (const TokenId token : *chunk) chunks.back().push_back(to_int(token));
    }
    EXPECT_EQ(index.share_read(), 1.0);
    return chunks;
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_.file("corpus.idx");
};

TEST_F(SssdIndexTest, ReadsSmallVocabulariesUnsigned) {
  const std::vector<std::vector<int>> expected = {{1, 2, 40'000, 65'535}, {7}};
  EXPECT_EQ(read(index_of<uint16_t>({{1, 2, 40'000, 65'535}, {7}}), 65'536), expected);
}

TEST_F(SssdIndexTest, ReadsLargeVocabularies) {
  const std::vector<std::vector<int>> expected = {{100'000, 0}, {1, 2, 3}};
  EXPECT_EQ(read(index_of<uint32_t>({{100'000, 0}, {1, 2, 3}}), 128'000), expected);
}

TEST_F(SssdIndexTest, RefusesOtherVocabularies) {
  EXPECT_EQ(error_of([&] { read(index_of<uint16_t>({{1, 500}}), 500); }), ErrorCode::kInvalidFile);
  EXPECT_EQ(error_of([&] { read(index_of<uint32_t>({{0xFFFFFFFF}}), 128'000); }),
            ErrorCode::kInvalidFile);
}

TEST_F(SssdIndexTest, ReadsNothingPastTheEnd) {
  for (const std::string& whole :
       {index_of<uint16_t>({{1, 2, 3}, {4, 5}}), index_of<uint32_t>({{1, 2, 3}, {4, 5}})}) {
    const size_t first_chunk =
        whole.size() - (index_of<uint16_t>({{4, 5}}).size() + (whole[0] == 0 ? 2 * (4 - 2) : 0));
    for (size_t size = 0; size < whole.size(); ++size) {
      if (size == first_chunk) continue;
      EXPECT_EQ(error_of([&] { read(whole.substr(0, size), 1000); }), ErrorCode::kInvalidFile) << size;
    }
  }
  EXPECT_EQ(error_of([&] { SssdIndex(folder_.file("none"), 1); }), ErrorCode::kNotFound);
}

TEST(DocumentsBetween, CutsAtSeparatorsAndAtALength) {
  const Document tokens = document({1, 5, 6, 1, 1, 7, 8, 9});
  EXPECT_EQ(documents_between(tokens, TokenId{1}, 100), document({5, 6, -1, 7, 8, 9, -1}));
  EXPECT_EQ(documents_between(tokens, TokenId{1}, 2), document({5, 6, -1, 7, 8, -1, 9, -1}));
  EXPECT_EQ(documents_between(tokens, std::nullopt, 100), document({1, 5, 6, 1, 1, 7, 8, 9, -1}));
  EXPECT_EQ(documents_between({}, TokenId{1}, 2), document({}));
}

}  // namespace
}  // namespace forerun
