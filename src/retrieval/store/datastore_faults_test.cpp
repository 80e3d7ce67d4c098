// Whatever goes wrong, a store says so and stays as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "retrieval/store/datastore.h"
#include "retrieval/store/store_check.h"
#include "retrieval/store/store_test_support.h"
#include "support/file_size_limit.h"

namespace forerun {
namespace {

using namespace test;
using Mode = Datastore::Mode;
using testing::HasSubstr;
using testing::IsEmpty;

std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

class DatastoreFaultsTest : public testing::Test {
 protected:
  std::unique_ptr<Datastore> open(Mode mode = Mode::kCreate) {
    return Datastore::open(path_, mode, quiet_options());
  }
  static std::vector<Document> documents(const Datastore& store) {
    return documents_in(*store.snapshot());
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_.file("store");
};

TEST_F(DatastoreFaultsTest, RemovesWhatACrashLeft) {
  open()->add(document({1}));
  for (const char* name : {"segment-000099", "segment-000098.part", "journal-000097", "manifest.part"}) {
    write_text(path_ / name, "left over");
  }
  write_text(path_ / "notes.txt", "mine");
  EXPECT_EQ(documents(*open(Mode::kRead)), Documents{document({1})});
  EXPECT_EQ(files_in(path_).size(), 3u + 5u) << "a reader removes nothing";
  EXPECT_EQ(documents(*open()), Documents{document({1})});
  EXPECT_EQ(files_in(path_).size(), 3u + 1u);
}

TEST_F(DatastoreFaultsTest, OneWriterManyReaders) {
  const auto writer = open();
  writer->add(document({1}));
  const std::string message = message_of([&] { open(Mode::kWrite); });
  EXPECT_THAT(message, HasSubstr("is being written by process " + std::to_string(::getpid())));
  EXPECT_THAT(message, HasSubstr("read-only"));
  const auto reader = open(Mode::kRead);
  const auto other_reader = open(Mode::kRead);
  writer->add(document({2}));
  writer->compact({});
  EXPECT_EQ(documents(*reader), Documents{document({1})}) << "as it was when opened";
  EXPECT_EQ(documents(*other_reader), Documents{document({1})});
  EXPECT_EQ(documents(*open(Mode::kRead)).size(), 2u);
}

TEST_F(DatastoreFaultsTest, ReadersChangeNothing) {
  {
    const auto store = open();
    store->add(document({1, 2}));
    store->tidy({});
    store->add(document({3}));
  }
  auto files = files_in(path_);
  // Not even a document that a crash cut off.
  for (auto& [name, contents] : files) {
    if (name.starts_with("journal-")) write_text(path_ / name, contents += "FREC????");
  }
  const auto store = open(Mode::kRead);
  EXPECT_EQ(documents(*store), (Documents{document({1, 2}), document({3})}));
  EXPECT_EQ(error_of([&] { store->add(document({1})); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { store->compact({}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { store->flush(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(files_in(path_), files);
}

TEST_F(DatastoreFaultsTest, AStoreOfAnotherTokenizerIsRefused) {
  open()->add(document({1}));
  const auto files = files_in(path_);
  StoreOptions options = quiet_options();
  for (const Mode mode : {Mode::kRead, Mode::kWrite, Mode::kCreate}) {
    options.identity = {kIdentity.tokenizer ^ 1, kIdentity.n_vocab};
    EXPECT_THAT(message_of([&] { Datastore::open(path_, mode, options); }),
                HasSubstr("another tokenizer"));
    options.identity = {kIdentity.tokenizer, kIdentity.n_vocab + 1};
    EXPECT_EQ(error_of([&] { Datastore::open(path_, mode, options); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(files_in(path_), files);
}

TEST_F(DatastoreFaultsTest, WhatIsNoStoreIsSaid) {
  EXPECT_EQ(error_of([&] { open(Mode::kRead); }), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { open(Mode::kWrite); }), ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::filesystem::create_directory(path_);
  EXPECT_EQ(error_of([&] { open(Mode::kRead); }), ErrorCode::kInvalidArgument);
  write_text(path_ / "letter.txt", "mine");
  EXPECT_EQ(error_of([&] { open(Mode::kCreate); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(files_in(path_).size(), 1u);
  EXPECT_EQ(error_of([&] { Datastore::open(path_ / "letter.txt", Mode::kCreate, quiet_options()); }),
            ErrorCode::kIo);
}

TEST_F(DatastoreFaultsTest, OptionsThatMakeNoSenseAreRefused) {
  for (const auto change :
       {+[](StoreOptions& o) { o.max_segment_tokens = 0; },
        +[](StoreOptions& o) { o.max_segment_tokens = Segment::kMaxTokens + 1; },
        +[](StoreOptions& o) { o.fold_tokens = -1; }, +[](StoreOptions& o) { o.capacity_tokens = -1; },
        +[](StoreOptions& o) { o.sync_interval = std::chrono::milliseconds(-1); }}) {
    StoreOptions options = quiet_options();
    change(options);
    EXPECT_EQ(error_of([&] { Datastore::open(path_, Mode::kCreate, options); }),
              ErrorCode::kInvalidArgument);
  }
}

TEST_F(DatastoreFaultsTest, AFullDiskFailsOneDocument) {
  const auto store = open();
  for (int i = 0; i < 20; ++i) store->add(numbered_document(i));
  const auto before = documents(*store);
  {
    const FileSizeLimit full(2000);
    EXPECT_EQ(error_of([&] {
                for (int i = 20; i < 200; ++i) store->add(numbered_document(i, 100));
              }),
              ErrorCode::kIo);
    EXPECT_THAT(store->info().problem, HasSubstr("cannot write"));
  }
  const auto at_failure = documents(*store);
  ASSERT_GE(at_failure.size(), before.size());
  EXPECT_EQ(documents(*open(Mode::kRead)), at_failure) << "what was acknowledged, and no more";
  store->add(document({1, 2, 3}));  // there is room again
  EXPECT_EQ(documents(*store).size(), at_failure.size() + 1);
  EXPECT_EQ(documents(*open(Mode::kRead)), documents(*store));
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
}

TEST_F(DatastoreFaultsTest, AFullDiskWhileFoldingLeavesTheStoreAsItWas) {
  const auto store = open();
  for (int i = 0; i < 500; ++i) store->add(numbered_document(i));
  const auto before = documents(*store);
  // Too little for the segment, then for the manifest, then for the new journal.
  for (const rlim_t limit : {8000, 150, 20}) {
    {
      const FileSizeLimit full(limit);
      EXPECT_EQ(error_of([&] { store->compact({}); }), ErrorCode::kIo) << limit;
      EXPECT_EQ(documents(*store), before);
    }
    EXPECT_EQ(documents(*open(Mode::kRead)), before) << limit;
    EXPECT_THAT(verify_store(path_).problems, IsEmpty()) << limit;
  }
  store->add(document({1}));
  EXPECT_TRUE(store->compact({}));
  EXPECT_EQ(documents(*store).size(), before.size() + 1);
  EXPECT_EQ(store->info().n_live_tokens, 0);
  EXPECT_EQ(files_in(path_).size(), 4u);
}

TEST_F(DatastoreFaultsTest, AFullDiskWhileAddingATextLeavesTheStoreAsItWas) {
  const auto store = open();
  store->add_text(document({1, 2, -1}), std::vector<uint64_t>{1}, {});
  const auto before = documents(*store);
  std::vector<TokenId> text;
  for (int i = 0; i < 1000; ++i) text.push_back(TokenId{i % 900});
  text.push_back(Segment::kSeparator);
  {
    const FileSizeLimit full(3000);
    EXPECT_EQ(error_of([&] { store->add_text(text, std::vector<uint64_t>{2}, {}); }), ErrorCode::kIo);
  }
  {
    const FileSizeLimit full(100'000);  // the sources do not fit
    EXPECT_EQ(error_of([&] { store->add_text(text, std::vector<uint64_t>(20'000, 2), {}); }),
              ErrorCode::kIo);
  }
  EXPECT_FALSE(store->has_source(2));
  EXPECT_EQ(documents(*store), before);
  EXPECT_EQ(documents(*open(Mode::kRead)), before);
  EXPECT_TRUE(store->add_text(text, std::vector<uint64_t>{2}, {}));
  EXPECT_TRUE(store->has_source(2));
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
}

TEST_F(DatastoreFaultsTest, AFolderThatCannotBeWrittenCanBeRead) {
  open()->add(document({1}));
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::permissions(path_,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  std::filesystem::permissions(path_ / "lock", std::filesystem::perms::owner_read);
  EXPECT_EQ(documents(*open(Mode::kRead)), Documents{document({1})});
  EXPECT_THAT(message_of([&] { open(Mode::kWrite); }), HasSubstr("can only be read"));
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace forerun
