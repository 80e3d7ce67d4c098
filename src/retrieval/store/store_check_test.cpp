#include "retrieval/store/store_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>

#include "retrieval/segment_file.h"
#include "retrieval/segment_test_support.h"
#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;
using Mode = Datastore::Mode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StoreCheckTest : public testing::Test {
 protected:
  // Two segments and a journal of three documents.
  void SetUp() override {
    StoreOptions options = quiet_options();
    options.max_segment_tokens = 100;
    const auto store = Datastore::open(path_, Mode::kCreate, options);
    store->add_text(text_of(0, 10), std::vector<uint64_t>{1}, {});
    store->add_text(text_of(10, 20), std::vector<uint64_t>{2}, {});
    for (int i = 20; i < 23; ++i) store->add(numbered_document(i));
    ASSERT_THAT(store->info().files, SizeIs(2));
    ASSERT_THAT(verify_store(path_).problems, IsEmpty());
  }

  static std::vector<TokenId> text_of(int first, int last) {
    std::vector<TokenId> text;
    for (int i = first; i < last; ++i) {
      const Document document = numbered_document(i);
      text.insert(text.end(), document.begin(), document.end());
      text.push_back(Segment::kSeparator);
    }
    return text;
  }

  std::filesystem::path file(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const auto& [name, contents] : files_in(path_)) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
    return path_ / names.at(0);
  }

  static SegmentHeader header_of(const std::filesystem::path& path) {
    SegmentHeader header;
    std::memcpy(&header, read_text(path).data(), sizeof(header));
    return header;
  }

  void damage(const std::filesystem::path& path, size_t at) {
    std::string contents = read_text(path);
    contents.at(at) = static_cast<char>(contents.at(at) ^ 0x20);
    // Beside it and renamed, as a mapped file must not change.
    write_text(path.string() + ".x", contents);
    std::filesystem::rename(path.string() + ".x", path);
  }

  Documents documents() const {
    return documents_in(*Datastore::open(path_, Mode::kRead, {})->snapshot());
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_.file("store");
};

TEST_F(StoreCheckTest, ADamagedTextIsFoundAndDropped) {
  damage(file("segment-"), header_of(file("segment-")).text_offset + 5);
  const auto files = files_in(path_);
  const StoreReport report = verify_store(path_);
  ASSERT_THAT(report.problems, SizeIs(1));
  EXPECT_THAT(report.problems[0], HasSubstr(file("segment-").filename().string()));
  EXPECT_EQ(report.n_documents, 13);
  EXPECT_EQ(files_in(path_), files) << "looking changes nothing";
  EXPECT_THAT(repair_store(path_).problems, SizeIs(1));
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
  EXPECT_THAT(documents(), SizeIs(13));
}

TEST_F(StoreCheckTest, ADamagedIndexIsMadeAnew) {
  const Documents before = documents();
  damage(file("segment-"), header_of(file("segment-")).order_offset + 5);
  const StoreReport report = repair_store(path_);
  EXPECT_THAT(report.problems, SizeIs(1));
  EXPECT_EQ(report.n_lost_documents, 0);
  EXPECT_EQ(report.n_documents, 23);
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
  EXPECT_EQ(documents(), before) << "in the same order";
  const auto store = Datastore::open(path_, Mode::kWrite, quiet_options());
  EXPECT_TRUE(store->has_source(1)) << "nothing was lost";
  EXPECT_FALSE(store->was_kept(numbered_document(0)));
}

// Damages a store of some hundred documents anywhere, repairs it and adds again what is missing.
TEST_F(StoreCheckTest, AddingAgainBringsBackWhatWasLostAndNothingElse) {
  std::mt19937 random(1);
  for (const bool is_first_version : {false, true}) {
    for (int round = 0; round < 8; ++round) {
      const auto path = folder_.file(fmt::format("store-{}-{}", is_first_version, round));
      Documents all;
      {
        StoreOptions options = quiet_options();
        options.max_segment_tokens = 4000;
        const auto store = Datastore::open(path, Mode::kCreate, options);
        std::vector<TokenId> text;
        for (int i = 0; i < 200; ++i) {
          all.push_back(numbered_document(i, 40));
          text.insert(text.end(), all.back().begin(), all.back().end());
          text.push_back(Segment::kSeparator);
          if (i % 50 != 49) continue;
          store->add_text(std::exchange(text, {}), std::vector<uint64_t>{static_cast<uint64_t>(i)}, {});
        }
        ASSERT_GE(store->info().files.size(), 2u);
      }
      std::vector<std::filesystem::path> segments;
      for (const auto& [name, contents] : files_in(path)) {
        if (name.starts_with("segment-")) segments.push_back(path / name);
      }
      for (const auto& segment : segments) {
        if (is_first_version) write_first_version(*Segment::open(segment), segment);
      }
      const auto& damaged = segments[random() % segments.size()];
      size_t at = random() % std::filesystem::file_size(damaged);
      if (at / 4 == offsetof(SegmentHeader, version) / 4) at = 0;  // says that it is a newer one
      damage(damaged, at);
      const StoreReport report = repair_store(path);
      EXPECT_THAT(verify_store(path).problems, IsEmpty());

      const auto store = Datastore::open(path, Mode::kWrite, quiet_options());
      EXPECT_EQ(store->info().n_documents, 200 - report.n_lost_documents);
      EXPECT_EQ(store->info().n_documents, report.n_documents);
      if (!is_first_version) {
        EXPECT_LE(report.n_lost_documents, 256 / 42 + 3) << "byte " << at;
      }
      EXPECT_EQ(store->has_source(49), report.n_lost_documents == 0) << "byte " << at;
      if (report.n_lost_documents == 0) continue;
      for (const Document& document : all) {
        if (!store->was_kept(document)) store->add(document);
      }
      Documents now = documents_in(*store->snapshot());
      std::sort(now.begin(), now.end());
      std::sort(all.begin(), all.end());
      EXPECT_EQ(now, all);
    }
  }
}

TEST_F(StoreCheckTest, WhatANewerVersionMadeIsNotRepaired) {
  for (const char* prefix : {"segment-", "journal-", "sources"}) {
    const auto path = file(prefix);
    const std::string before = read_text(path);
    std::string newer = before;
    newer[std::string_view(prefix) == "segment-" ? offsetof(SegmentHeader, version) : 4] = 99;
    write_text(path, newer);
    EXPECT_EQ(error_of([&] { verify_store(path_); }), ErrorCode::kUnsupported) << prefix;
    EXPECT_EQ(error_of([&] { repair_store(path_); }), ErrorCode::kUnsupported) << prefix;
    EXPECT_EQ(read_text(path), newer);
    write_text(path, before);
  }
}

TEST_F(StoreCheckTest, DamageIsNotMergedIntoOtherSegments) {
  damage(file("segment-"), 500);
  const auto files = files_in(path_);
  const auto store = Datastore::open(path_, Mode::kWrite, quiet_options());
  EXPECT_EQ(error_of([&] { store->compact({}); }), ErrorCode::kInvalidFile);
  EXPECT_THAT(documents_in(*store->snapshot()), SizeIs(23));
}

TEST_F(StoreCheckTest, AMissingOrTruncatedSegmentIsAnErrorThatSaysWhatToDo) {
  const auto path = file("segment-");
  for (const bool missing : {false, true}) {
    if (missing) {
      std::filesystem::remove(path);
    } else {
      std::filesystem::resize_file(path, 300);
    }
    for (const Mode mode : {Mode::kRead, Mode::kWrite}) {
      try {
        Datastore::open(path_, mode, quiet_options());
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidFile);
        EXPECT_THAT(error.what(), HasSubstr("verify --repair"));
      }
    }
    EXPECT_THAT(verify_store(path_).problems, SizeIs(1));
  }
  repair_store(path_);
  EXPECT_THAT(documents(), SizeIs(13));
}

TEST_F(StoreCheckTest, ASegmentOfAnotherStoreIsFound) {
  const auto other = folder_.file("other");
  const auto store = Datastore::open(other, Mode::kCreate, quiet_options());
  store->add(document({1, 2}));
  store->compact({});
  std::filesystem::path theirs;
  for (const auto& [name, contents] : files_in(other)) {
    if (name.starts_with("segment-")) theirs = other / name;
  }
  std::filesystem::copy_file(theirs, path_ / "copy");
  std::filesystem::rename(path_ / "copy", file("segment-"));
  EXPECT_EQ(error_of([&] { documents(); }), ErrorCode::kInvalidFile);
  EXPECT_THAT(verify_store(path_).problems, SizeIs(1));
}

TEST_F(StoreCheckTest, ADamagedJournalKeepsTheDocumentsThatAreWhole) {
  const auto path = file("journal-");
  damage(path, 40 + 16 + 4);  // in the first document
  EXPECT_EQ(error_of([&] { documents(); }), ErrorCode::kInvalidFile);
  EXPECT_THAT(verify_store(path_).problems, SizeIs(1));
  const StoreReport report = repair_store(path_);
  EXPECT_THAT(report.problems, SizeIs(1));
  EXPECT_THAT(report.notes, SizeIs(1));
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
  const Documents kept = documents();
  ASSERT_THAT(kept, SizeIs(22));
  EXPECT_EQ(kept[20], numbered_document(21));
  EXPECT_EQ(kept[21], numbered_document(22));
}

TEST_F(StoreCheckTest, ALostJournalLeavesTheRest) {
  std::filesystem::remove(file("journal-"));
  EXPECT_EQ(error_of([&] { documents(); }), ErrorCode::kInvalidFile);
  repair_store(path_);
  EXPECT_THAT(documents(), SizeIs(20));
  Datastore::open(path_, Mode::kWrite, quiet_options())->add(document({1}));
  EXPECT_THAT(documents(), SizeIs(21));
}

TEST_F(StoreCheckTest, DamagedSourcesAreForgottenButNotTheDocuments) {
  damage(file("sources"), std::filesystem::file_size(file("sources")) - 4);  // in the last record
  EXPECT_THAT(verify_store(path_).problems, SizeIs(1));
  EXPECT_EQ(error_of([&] { Datastore::open(path_, Mode::kWrite, quiet_options()); }),
            ErrorCode::kInvalidFile);
  EXPECT_THAT(documents(), SizeIs(23)) << "readers do not need them";
  repair_store(path_);
  const auto store = Datastore::open(path_, Mode::kWrite, quiet_options());
  EXPECT_FALSE(store->has_source(1));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(store->was_kept(numbered_document(i)));
  EXPECT_FALSE(store->was_kept(numbered_document(23)));
}

TEST_F(StoreCheckTest, ADamagedManifestIsAnError) {
  damage(path_ / "manifest", 30);
  EXPECT_EQ(error_of([&] { verify_store(path_); }), ErrorCode::kInvalidFile);
  EXPECT_EQ(error_of([&] { repair_store(path_); }), ErrorCode::kInvalidFile);
  EXPECT_EQ(error_of([&] { documents(); }), ErrorCode::kInvalidFile);
}

TEST_F(StoreCheckTest, ADocumentCutOffByACrashIsNoDamage) {
  const auto path = file("journal-");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  const StoreReport report = verify_store(path_);
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.notes, SizeIs(1));
  EXPECT_EQ(report.n_documents, 22);
  EXPECT_THAT(documents(), SizeIs(22));
}

TEST_F(StoreCheckTest, SomebodyElseWrites) {
  const auto store = Datastore::open(path_, Mode::kWrite, quiet_options());
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
  EXPECT_EQ(error_of([&] { repair_store(path_); }), ErrorCode::kIo);
}

}  // namespace
}  // namespace forerun
