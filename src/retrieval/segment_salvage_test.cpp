#include "retrieval/segment_salvage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/error.h"
#include "retrieval/segment_test_support.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using Text = std::vector<TokenId>;

class SegmentSalvage : public ::testing::Test {
 protected:
  // Documents of up to 100 tokens.
  void make(int n_vocab, int n_documents) {
    text_ = random_text({.n_documents = n_documents, .max_length = 100, .n_vocab = n_vocab}, random_);
    segment_ = Segment::build(text_, {77, n_vocab}, 1);
    claim_ = {segment_->identity(), segment_->n_tokens(), segment_->n_documents()};
  }
  void write_version(int version) {
    if (version == 1) {
      write_first_version(*segment_, path_);
    } else {
      segment_->write(path_);
    }
    good_ = read();
    std::memcpy(&header_, good_.data(), sizeof(header_));
  }

  std::string read() const {
    std::string contents(std::filesystem::file_size(path_), '\0');
    std::ifstream(path_, std::ios::binary).read(contents.data(), std::ssize(contents));
    return contents;
  }
  Text salvaged_from(const std::string& contents) const {
    std::ofstream(path_, std::ios::binary) << contents;
    return salvage_segment(path_, claim_);
  }
  Text salvaged_without(size_t offset) const {
    std::string bad = good_;
    bad[offset] = static_cast<char>(bad[offset] ^ 0x10);
    return salvaged_from(bad);
  }

  // The documents that lie outside [begin, end), and whose ends and begins do too.
  Text text_outside(int64_t begin, int64_t end) const {
    Text kept;
    int64_t first = 0;
    for (int64_t place = 0; place < static_cast<int64_t>(text_.size()); ++place) {
      if (text_[static_cast<size_t>(place)] != Segment::kSeparator) continue;
      if (place < begin || first - 1 >= end) {
        kept.insert(kept.end(), text_.begin() + first, text_.begin() + place + 1);
      }
      first = place + 1;
    }
    return kept;
  }

  test::TempDir folder_;
  const std::filesystem::path path_ = folder_.file("segment");
  std::mt19937 random_{3};
  Text text_;
  std::shared_ptr<const Segment> segment_;
  SegmentClaim claim_{};
  std::string good_;
  SegmentHeader header_{};
};

TEST_F(SegmentSalvage, AWholeFileGivesAllOfItsText) {
  for (const int n_vocab : {300, 70000}) {
    for (const int version : {1, 2}) {
      make(n_vocab, 50);
      write_version(version);
      EXPECT_NO_THROW(Segment::open(path_)->verify()) << "version " << version;
      EXPECT_EQ(salvage_segment(path_, claim_), text_);
    }
  }
}

TEST_F(SegmentSalvage, OneDamagedByteOfTheTextCostsTheDocumentsAroundIt) {
  for (const int n_vocab : {300, 70000}) {
    make(n_vocab, 60);
    write_version(2);
    const auto tokens_per_block =
        static_cast<int64_t>(SegmentHeader::kTextBlockBytes / header_.token_bytes);
    for (size_t offset = header_.text_offset;
         offset < header_.text_offset + text_.size() * header_.token_bytes; offset += 211) {
      const auto block =
          static_cast<int64_t>((offset - header_.text_offset) / SegmentHeader::kTextBlockBytes);
      const Text expected = text_outside(block * tokens_per_block, (block + 1) * tokens_per_block);
      EXPECT_EQ(salvaged_without(offset), expected) << "byte " << offset;
      EXPECT_LT(text_.size() - expected.size(), static_cast<size_t>(tokens_per_block) + 2 * 101);
    }
  }
}

TEST_F(SegmentSalvage, DamageOutsideOfTheTextCostsNothing) {
  make(300, 60);
  write_version(2);
  const size_t text_end = header_.text_offset + text_.size() * header_.token_bytes;
  for (size_t offset = 0; offset < good_.size(); offset += offset < 256 ? 3 : 53) {
    if (offset >= header_.text_offset && offset < text_end) offset = text_end;
    // A checksum of the text is doubted together with the large block that it lies in.
    const bool is_text_sum = offset >= sizeof(header_) && offset < header_.directory_offset;
    const Text kept = salvaged_without(offset);
    if (is_text_sum) {
      EXPECT_GE(kept.size() + 256 + 2 * 101, text_.size()) << "byte " << offset;
    } else {
      EXPECT_EQ(kept, text_) << "byte " << offset;
    }
  }
}

TEST_F(SegmentSalvage, AFileCutShortGivesWhatItHas) {
  make(300, 60);
  write_version(2);
  size_t before = 0;
  for (size_t size = 0; size < good_.size(); size += 397) {
    const Text kept = salvaged_from(good_.substr(0, size));
    EXPECT_GE(kept.size(), before);
    EXPECT_TRUE(std::equal(kept.begin(), kept.end(), text_.begin()));
    before = kept.size();
  }
  EXPECT_EQ(before, text_.size()) << "the index stands behind the text";
}

TEST_F(SegmentSalvage, TheFirstVersionGivesWhatIsOutsideOfItsBlocks) {
  make(300, 40'000);  // four blocks of text
  write_version(1);
  const size_t middle = header_.text_offset + text_.size() * header_.token_bytes / 2;
  const size_t block = (middle - header_.directory_offset) / SegmentHeader::kBlockBytes;
  const auto place_of = [&](size_t at) {
    return (static_cast<int64_t>(header_.directory_offset + at * SegmentHeader::kBlockBytes) -
            static_cast<int64_t>(header_.text_offset)) /
           header_.token_bytes;
  };
  const Text kept = salvaged_without(middle);
  EXPECT_EQ(kept, text_outside(place_of(block), place_of(block + 1)));
  EXPECT_GT(kept.size(), text_.size() / 2);
  EXPECT_EQ(salvaged_without(good_.size() / 4 * 3), text_) << "in the index";
}

TEST_F(SegmentSalvage, ADamagedIndexOfTheFirstVersionCostsNothing) {
  for (const int n_vocab : {300, 70000}) {
    make(n_vocab, 60);  // one block for text and index
    write_version(1);
    for (const size_t offset : {header_.directory_offset + 9, header_.order_offset + 40}) {
      EXPECT_EQ(salvaged_without(offset), text_) << "byte " << offset;
    }
    EXPECT_TRUE(salvaged_without(header_.text_offset + 7).empty());
  }
}

TEST_F(SegmentSalvage, WhatIsNoSegmentGivesNothing) {
  make(300, 10);
  write_version(2);
  EXPECT_TRUE(salvaged_from("").empty());
  EXPECT_TRUE(salvaged_from(std::string(5000, 'x')).empty());
  claim_.n_tokens = int64_t{1} << 60;
  EXPECT_TRUE(salvaged_from(good_).empty());
  std::filesystem::remove(path_);
  EXPECT_THROW(salvage_segment(path_, claim_), Error);
}

}  // namespace
}  // namespace forerun
