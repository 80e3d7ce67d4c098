#include "retrieval/store/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;

// What a journal with these documents gives back.
std::vector<TokenId> text_of(std::span<const Document> documents) {
  std::vector<TokenId> text;
  for (const Document& document : documents) {
    text.insert(text.end(), document.begin(), document.end());
    text.push_back(Segment::kSeparator);
  }
  return text;
}

class JournalTest : public testing::Test {
 protected:
  // Writes the documents; where each record ends.
  std::vector<int64_t> write(std::span<const Document> documents) {
    Journal journal = Journal::create(path_, kIdentity);
    std::vector<int64_t> ends{journal.n_bytes()};
    for (const Document& document : documents) {
      journal.append(document);
      ends.push_back(journal.n_bytes());
    }
    return ends;
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_.file("journal");
  std::vector<Document> documents_ = {numbered_document(1, 3), numbered_document(2, 0),
                                      numbered_document(3, 30), numbered_document(4, 1)};
};

TEST_F(JournalTest, GivesBackWhatWasWritten) {
  write(documents_);
  const JournalContents journal = read_journal(path_, kIdentity);
  EXPECT_EQ(journal.text, text_of(documents_));
  EXPECT_EQ(journal.n_documents, 4);
  EXPECT_EQ(journal.n_torn_bytes, 0);
}

TEST_F(JournalTest, CutAnywhereItKeepsTheWholeDocumentsAndGoesOn) {
  const std::vector<int64_t> ends = write(documents_);
  const std::string whole = read_text(path_);
  for (int64_t size = ends[0]; size <= ends.back(); ++size) {
    write_text(path_, std::string_view(whole).substr(0, static_cast<size_t>(size)));
    const auto n_whole =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), size) - ends.begin()) - 1;
    const JournalContents cut = read_journal(path_, kIdentity);
    ASSERT_EQ(cut.text, text_of(std::span(documents_).first(n_whole))) << size;
    ASSERT_EQ(cut.n_good_bytes, ends[n_whole]) << size;
    ASSERT_EQ(cut.n_torn_bytes, size - ends[n_whole]) << size;

    Journal::append_to(path_, cut.n_good_bytes).append(documents_[1]);
    std::vector<Document> expected(documents_.begin(),
                                   documents_.begin() + static_cast<std::ptrdiff_t>(n_whole));
    expected.push_back(documents_[1]);
    ASSERT_EQ(read_journal(path_, kIdentity).text, text_of(expected)) << size;
  }
}

TEST_F(JournalTest, EmptySpaceAtTheEndIsNoDocument) {
  // What a power cut can leave: a file that grew without its contents.
  const std::vector<int64_t> ends = write(documents_);
  for (const size_t n_zeros : {1, 8, 16, 1000}) {
    std::string text = read_text(path_).substr(0, static_cast<size_t>(ends.back()));
    text.append(n_zeros, '\0');
    write_text(path_, text);
    EXPECT_EQ(read_journal(path_, kIdentity).text, text_of(documents_));
  }
}

TEST_F(JournalTest, DamageBeforeWholeDocumentsIsAnErrorOrSkipped) {
  const std::vector<int64_t> ends = write(documents_);
  const std::string whole = read_text(path_);
  for (int64_t at = ends[1]; at < ends[2]; ++at) {
    std::string damaged = whole;
    damaged[static_cast<size_t>(at)] ^= 0x10;
    write_text(path_, damaged);
    const bool is_padding = read_journal(path_, kIdentity, Damage::kSkip).n_damaged == 0;
    if (is_padding) continue;
    EXPECT_EQ(error_of([&] { read_journal(path_, kIdentity); }), ErrorCode::kInvalidFile) << at;
    const JournalContents kept = read_journal(path_, kIdentity, Damage::kSkip);
    EXPECT_EQ(kept.text, text_of(std::vector{documents_[0], documents_[2], documents_[3]})) << at;
    EXPECT_EQ(kept.n_damaged, 1);
  }
}

TEST_F(JournalTest, EveryByteOfTheHeaderIsChecked) {
  write(documents_);
  const std::string whole = read_text(path_);
  for (size_t at = 0; at < 40; ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    write_text(path_, damaged);
    EXPECT_TRUE(error_of([&] { read_journal(path_, kIdentity); })) << at;
  }
  for (size_t size = 0; size < 40; ++size) {
    write_text(path_, std::string_view(whole).substr(0, size));
    EXPECT_EQ(error_of([&] { read_journal(path_, kIdentity); }), ErrorCode::kInvalidFile) << size;
  }
}

TEST_F(JournalTest, BelongsToATokenizer) {
  write(documents_);
  const Segment::Identity other{kIdentity.tokenizer + 1, kIdentity.n_vocab};
  EXPECT_EQ(error_of([&] { read_journal(path_, other); }), ErrorCode::kInvalidFile);
  const Segment::Identity smaller{kIdentity.tokenizer, kIdentity.n_vocab - 1};
  EXPECT_EQ(error_of([&] { read_journal(path_, smaller); }), ErrorCode::kInvalidFile);
}

TEST_F(JournalTest, TakesBackADocument) {
  Journal journal = Journal::create(path_, kIdentity);
  journal.append(documents_[0]);
  const int64_t n_bytes = journal.n_bytes();
  journal.append(documents_[2]);
  journal.cut(n_bytes);
  journal.append(documents_[3]);
  EXPECT_EQ(read_journal(path_, kIdentity).text, text_of(std::vector{documents_[0], documents_[3]}));
}

}  // namespace
}  // namespace forerun
